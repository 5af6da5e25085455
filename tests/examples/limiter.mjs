// The limiter of express.mjs and fastify.mjs: node-redis, with a bound on how long a request waits for it.
import { createClient } from 'redis'

const redis = createClient({ url: process.env.REDIS_URL, disableOfflineQueue: true }) // without a connection a call fails at once
redis.on('error', (err) => console.error('limiter:', err.message)) // without a listener an error would end the process
redis.connect().catch(() => {}) // the listener has reported it, and the client tries again
let again = 0 // when the limiter may be asked again after a failure

// ask sends one command and returns its reply. Without an answer within 50 ms the request passes (this limiter fails open), and for a
// second the limiter is not asked again. The command is not sent twice, since it may then be charged twice.
export async function ask(...command) {
  if (Date.now() < again) return [0]
  let timer
  const late = new Promise((_, reject) => { timer = setTimeout(reject, 50, new Error('no answer within 50 ms')) })
  try {
    return await Promise.race([redis.sendCommand(command), late])
  } catch (err) {
    console.error('limiter:', err.message)
    again = Date.now() + 1000
    return [0]
  } finally {
    clearTimeout(timer)
  }
}
