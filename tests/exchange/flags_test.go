package exchange

import "flag"

var seedFlag = flag.Uint64("exchange.seed", 0, "seed of what is written; 0 draws one")
