"""commlang: communication patterns, proven free of deadlock before they run."""
