// An Express application that allows each client address ten requests at once and five a second. Install express and redis, then:
//
//	REDIS_URL=redis://127.0.0.1:6379 PORT=3000 node express.mjs
import express from 'express'
import { ask } from './limiter.mjs'

const app = express()

app.use(async (req, res, next) => {
  const [limited, , , retryAfter] = await ask('RL.GCRA', `ip:${req.ip}`, '10', '5', '1s')
  if (!limited) return next()
  res.set('Retry-After', Math.ceil(retryAfter / 1000)).sendStatus(429)
})

app.get('/', (req, res) => res.send('hello\n'))
app.listen(process.env.PORT ?? 3000, '127.0.0.1')
