"""The evaluator: a pattern, evaluated once for all ranks, becomes a columnar Program."""
