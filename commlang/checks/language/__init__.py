"""Pages of what the parser, the resolver and the expansion refuse: rules without a check here.

`commlang rule` and the documentation load them; checking a pattern does not.
"""
