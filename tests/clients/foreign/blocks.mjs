// What rate-limiter-flexible's blockDuration does, on random calls by a clock that stands where the script puts it:
// node blocks.mjs > ../../../server/limits/testdata/rate-limiter-flexible.txt
//
//   limiter points duration blockDuration     in seconds
//   ms key points allowed|limited msBeforeNext consume, so many ms after the beginning
//   ms key block seconds                       block
import { mock } from 'node:test'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_700_000_000_000 })
const begin = Date.now()

// Numerical Recipes' generator, so that the calls are the same each time.
let state = 1n
const random = (n) => {
  state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn
  return Number((state >> 33n) % BigInt(n))
}

for (let i = 0; i < 60; i++) {
  const points = 1 + random(5), duration = 1 + random(3)
  const blockDuration = duration + random(5) // with a shorter one, the end of a block is the end of the window, too
  const limiter = new RateLimiterMemory({ points, duration, blockDuration })
  console.log('limiter', points, duration, blockDuration)
  for (let j = 0; j < 60; j++) {
    mock.timers.tick([0, random(50), random(duration * 400), random(2) * duration * 1000, random(blockDuration * 1000)][random(5)])
    const key = 'abc'[random(3)], at = Date.now() - begin
    if (random(25) === 0) {
      const seconds = duration + random(6)
      await limiter.block(key, seconds)
      console.log(at, key, 'block', seconds)
      continue
    }
    const cost = random(4) ? 1 : 1 + random(points)
    let answer = 'allowed'
    const res = await limiter.consume(key, cost).catch((limited) => {
      if (!(limited instanceof RateLimiterRes)) throw limited
      answer = 'limited'
      return limited
    })
    console.log(at, key, cost, answer, res.msBeforeNext)
  }
}
