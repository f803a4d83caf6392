from names import main

pattern own(x: float32[8]):
    main(x)
