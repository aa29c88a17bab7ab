from empo_bi.cli import main

main()
