"""`python -m shardfeed.wids`: the command widsindex."""

from .wids_index import main

if __name__ == "__main__":
    main()
