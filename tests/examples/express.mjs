// An Express application that allows each client address ten requests at once and five a second. Install express and redis, then:
//
//	REDIS_URL=redis://127.0.0.1:6379 PORT=3000 node express.mjs
import express from 'express'
import { createClient } from 'redis'

const app = express()

const redis = createClient({ url: process.env.REDIS_URL, disableOfflineQueue: true }) // without a connection a call fails at once
redis.on('error', (err) => console.error('limiter:', err.message)) // without a listener an error would end the process
redis.connect().catch(() => {}) // the listener hears of it, and the client tries again
let again = 0 // when the limiter may be asked again after a failure

// ask waits 50 ms for an answer. Without one requests pass (this limiter fails open), and for a second it is not asked again.
async function ask(key) {
  if (Date.now() < again) return [0]
  let timer
  const late = new Promise((_, reject) => { timer = setTimeout(reject, 50, new Error('no answer within 50 ms')) })
  try {
    return await Promise.race([redis.sendCommand(['RL.GCRA', key, '10', '5', '1s']), late])
  } catch (err) {
    console.error('limiter:', err.message)
    again = Date.now() + 1000
    return [0]
  } finally {
    clearTimeout(timer)
  }
}

app.use(async (req, res, next) => {
  const [limited, , , retryAfter] = await ask(`ip:${req.ip}`)
  if (!limited) return next()
  res.set('Retry-After', Math.ceil(retryAfter / 1000)).sendStatus(429)
})

app.get('/', (req, res) => res.send('hello\n'))
app.listen(process.env.PORT ?? 3000, '127.0.0.1')
