"""The installation's secret, the text of keys, and values that are looked up elsewhere."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from hopline.local.ports import free_ports
from indexers.errors import ConfigurationError, Transient
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import OpenSearchSettings
from search_api.identity.key_text import KeyDigester, is_key_id, key_id_of, new_key
from search_api.identity.lookup import CachedLookup
from search_api.identity.managed_keys import ManagedKeys
from search_api.identity.refusals import Refused
from search_api.identity.register import key_register
from search_api.identity.secret import InstallationSecret
from search_api.identity.stored import StoredKey
from search_api.keys import generate_key

AT = datetime(2031, 4, 5, tzinfo=UTC)


class TestSecret:
    def test_it_is_made_once_private_and_the_same_afterwards(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "installation-secret"
        with ThreadPoolExecutor(8) as threads:
            made = list(threads.map(lambda _: InstallationSecret.ensure(path), range(8)))
        assert {secret.derive("a") for secret in made} == {InstallationSecret.read(path).derive("a")}
        assert path.stat().st_mode & 0o777 == 0o600
        assert [file.name for file in path.parent.iterdir()] == [path.name]

    def test_purposes_and_installations_share_nothing(self, tmp_path: Path) -> None:
        one, two = (InstallationSecret.ensure(tmp_path / name) for name in ("one", "two"))
        derived = {secret.derive(label) for secret in (one, two) for label in ("api-keys", "receipts")}
        assert (len(derived), {len(value) for value in derived}) == (4, {32})

    def test_it_is_not_shown(self) -> None:
        assert repr(InstallationSecret("s" * 40)) == "InstallationSecret(…)"

    @pytest.mark.parametrize("content", [b"", b"short", b" " * 100, b"\xff" * 64])
    def test_a_file_that_holds_none_is_named(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "secret"
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match="secret"):
            InstallationSecret.ensure(path)

    def test_a_named_file_is_never_made(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="can't be read"):
            InstallationSecret.read(tmp_path / "none")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_takes_no_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ConfigurationError, match="can't be made"):
            InstallationSecret.ensure(tmp_path / "file" / "installation-secret")


class TestKeyText:
    def test_keys_are_different_and_carry_their_id(self) -> None:
        keys = [new_key() for _ in range(50)]
        assert len({key.text for key in keys}) == len({key.key_id for key in keys}) == 50
        assert all(re.fullmatch(r"hop_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", key.text) for key in keys)
        assert [key_id_of(key.text) for key in keys] == [key.key_id for key in keys]
        assert keys[0].text not in repr(keys[0])

    @pytest.mark.parametrize(
        "text", ["", "hop_", f"hop_{'0' * 16}_{'a' * 42}", f"hop_{'0' * 16}_{'a' * 44}",
                 f"hop_{'G' * 16}_{'a' * 43}", f"hop_{'0' * 16}_{'a' * 43}\n", f"hop_{'٠' * 16}_{'a' * 43}"]
    )  # fmt: skip
    def test_anything_else_is_no_key_of_the_register(self, text: str) -> None:
        assert key_id_of(text) is None

    def test_a_key_of_the_key_file_is_no_key_of_the_register(self) -> None:
        assert key_id_of(generate_key()) is None

    def test_an_id(self) -> None:
        assert [is_key_id(text) for text in ("0123456789abcdef", "0123456789ABCDEF", "x", "*", "")] == [
            True, False, False, False, False,
        ]  # fmt: skip

    def test_digests_need_the_secret(self) -> None:
        text = new_key().text
        one, two = (KeyDigester(InstallationSecret(letter * 40)) for letter in "ab")
        assert one.digest(text) == KeyDigester(InstallationSecret("a" * 40)).digest(text)
        assert one.digest(text) != two.digest(text)
        assert len(one.digest("\udcff")) == 64


class TestStoredKey:
    KEY = StoredKey(
        key_id="0" * 16, tenant="acme", agent="ada", digest="a" * 64, created_at=AT, created_by=""
    )

    def test_states(self) -> None:
        replace = msgspec.structs.replace
        assert self.KEY.state(AT) == "active"
        assert replace(self.KEY, expires_at=AT).state(AT) == "expired"
        assert replace(self.KEY, expires_at=AT + timedelta(seconds=1)).state(AT) == "active"
        assert replace(self.KEY, expires_at=AT, revoked_at=AT).state(AT) == "revoked"

    def test_the_digest_before_counts_in_its_grace_only(self) -> None:
        until = AT + timedelta(seconds=5)
        key = msgspec.structs.replace(self.KEY, previous_digest="b" * 64, previous_until=until)
        assert [key.has_digest("b" * 64, at) for at in (AT, until)] == [True, False]
        assert key.has_digest("a" * 64, until)
        assert not self.KEY.has_digest("0" * 64, AT)

    def test_a_stored_role_that_no_key_has_makes_nobody(self) -> None:
        with pytest.raises(ValueError, match="roles"):
            _ = msgspec.structs.replace(self.KEY, roles=("pipeline",)).principal


class World:
    """A store that can be away, with a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.values: dict[str, str] = {"a": "1"}
        self.away = False
        self.asked: list[str] = []

    async def fetch(self, name: str) -> str | None:
        self.asked.append(name)
        found = self.values.get(name)
        await asyncio.sleep(0)
        if self.away:
            msg = "away"
            raise Transient(msg)
        return found

    def lookup(self, entries: int = 100) -> CachedLookup[str]:
        return CachedLookup(self.fetch, ttl_seconds=10, entries=entries, clock=lambda: self.now)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class TestLookup:
    async def test_a_value_is_asked_for_once_while_it_counts(self) -> None:
        world = World()
        lookup = world.lookup()
        assert await asyncio.gather(*(lookup.get("a") for _ in range(20))) == ["1"] * 20
        world.now = 4.9
        assert (await lookup.get("a"), world.asked) == ("1", ["a"])

    async def test_an_older_one_is_asked_for_beside(self) -> None:
        world = World()
        lookup = world.lookup()
        await lookup.get("a")
        world.values["a"], world.now = "2", 5.0
        assert await lookup.get("a") == "1"
        await settle()
        assert (await lookup.get("a"), world.asked) == ("2", ["a", "a"])

    async def test_no_value_counts_longer_than_said(self) -> None:
        world = World()
        lookup = world.lookup()
        await lookup.get("a")
        del world.values["a"]
        world.now = 10.0
        assert await lookup.get("a") is None

    async def test_a_missing_value_is_remembered_apart(self) -> None:
        world = World()
        lookup = world.lookup(entries=3)
        await lookup.get("a")
        for number in range(50):
            assert await lookup.get(f"x{number}") is None
        assert (await lookup.get("a"), await lookup.get("x49")) == ("1", None)
        assert world.asked == ["a", *(f"x{number}" for number in range(50))]

    async def test_a_name_that_is_asked_for_again_is_new_again(self) -> None:
        world = World()
        lookup = world.lookup()
        assert (await lookup.get("x"), lookup.is_new("x")) == (None, False)
        world.now = 10.0
        assert (lookup.is_new("x"), lookup.is_new("y")) == (True, True)

    async def test_the_longest_unused_goes_first(self) -> None:
        world = World()
        world.values = {name: name for name in "abcd"}
        lookup = world.lookup(entries=3)
        for name in "abcad":
            await lookup.get(name)
        assert [lookup.last_known(name) for name in "abcd"] == ["a", None, "c", "d"]

    async def test_a_store_that_is_away_is_told_and_not_asked_by_everybody(self) -> None:
        world = World()
        lookup = world.lookup()
        world.away = True
        for name in ("a", "a", "b"):
            with pytest.raises(Transient):
                await lookup.get(name)
        assert world.asked == ["a"]
        world.away, world.now = False, 1.0
        assert await lookup.get("a") == "1"

    async def test_a_value_outlives_a_store_that_is_away_for_as_long_as_it_counts(self) -> None:
        world = World()
        lookup = world.lookup()
        await lookup.get("a")
        world.away, world.now = True, 9.0
        assert await lookup.get("a") == "1"
        await settle()
        world.now = 10.0
        with pytest.raises(Transient):
            await lookup.get("a")
        assert lookup.last_known("a") == "1"

    async def test_what_was_being_asked_before_a_change_is_not_remembered_after_it(self) -> None:
        world = World()
        lookup = world.lookup()
        before = asyncio.create_task(lookup.get("a"))
        while not world.asked:  # noqa: ASYNC110 - the loop's own steps
            await asyncio.sleep(0)
        world.values["a"] = "2"
        lookup.forget("a")
        assert await lookup.get("a") == "2"
        assert await before == "1"
        assert await lookup.get("a") == "2"

    async def test_a_caller_that_leaves_takes_nothing_from_the_others(self) -> None:
        world = World()
        lookup = world.lookup()
        first, second = (asyncio.create_task(lookup.get("a")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "1"
        await lookup.close()


async def test_made_up_keys_cost_the_store_no_more_than_so_many_look_ups() -> None:
    url = f"http://127.0.0.1:{free_ports()}"
    gate = gate_at(url, OpenSearchSettings(), prefix="away", retry=RetryPolicy.once())
    digester = KeyDigester(InstallationSecret("s" * 40))
    clock = World()
    keys = ManagedKeys(key_register(gate), digester, ttl_seconds=5, clock=lambda: clock.now)
    answers: list[str] = []
    for _ in range(1_001):
        made = new_key()
        try:
            await keys.find(made.text, made.key_id)
        except Transient:
            answers.append("away")
        except Refused as refused:
            answers.append(f"{refused.reason} {refused.problem.status}")
    assert answers == ["away"] * 1_000 + ["busy 429"]
    clock.now += 0.01
    with pytest.raises(Transient):
        await keys.find(made.text, made.key_id)
    await gate.close()
