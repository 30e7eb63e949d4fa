"""The Markdown parser, set up for notes."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType

from indexers.domain.blockrules import delimited_block, outline
from indexers.domain.wikilinks import TERMINATORS, code, hidden, image, reference, tag, wikilink


def markdown_parser() -> MarkdownIt:
    """CommonMark with tables, wikilinks, tags, comments and formulas; inline content is left to the caller."""
    parser = _Parser("commonmark", {"maxNesting": 60}).enable("table")
    parser.disable(["emphasis", "autolink", "html_inline", "entity", "balance_pairs", "text_join"])
    for name, mark in (("comment_block", "%%"), ("math_block", "$$")):
        ends: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
        parser.block.ruler.before("fence", name, delimited_block(mark), ends)
    parser.block.ruler.before("code", "outline", outline)
    parser.inline.ruler.before("link", "wikilink", wikilink)
    parser.inline.ruler.at("backticks", code)
    parser.inline.ruler.at("link", reference)
    parser.inline.ruler.at("image", image)
    parser.inline.ruler.push("hidden", hidden)
    parser.inline.ruler.push("tag", tag)
    parser.inline.terminator_re = TERMINATORS
    parser.core.ruler.disable("inline")
    return parser


class _Parser(MarkdownIt):
    """Link targets stay as written: they name files, not addresses."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the parser's name
        return url

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 - the parser's signature
        return True
