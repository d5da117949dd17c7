"""`python -m durability.cli`: the same as `kafka-durability`."""

from durability.cli import main

if __name__ == "__main__":
    main()
