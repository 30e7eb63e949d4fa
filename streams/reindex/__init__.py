"""Another model for all chunks while the present one serves: docs/explanation/reindex.md."""
