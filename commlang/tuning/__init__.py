"""Which pattern to take where several do the same: candidates, and tables of what was measured."""
