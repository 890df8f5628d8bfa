"""python -m tfdet."""

from tfdet.cli import main

main()
