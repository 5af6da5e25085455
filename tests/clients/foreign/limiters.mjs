// The limiter libraries of npm, each with 20 clients that ask 10,000 times for what may be had 1,000 times:
// node limiters.mjs [NAME…]
import { once } from 'node:events'
import http from 'node:http'
import { assert, done, host, port, step } from './steps.mjs'
import { Redis } from 'ioredis5'

const clients = 20
const requests = 10_000
const limit = 1_000
const key = (name) => `${name}:${process.pid}:${Date.now()}`
const opened = []
const open = (options = {}) => {
  const client = new Redis({ host, port, ...options })
  opened.push(client)
  return client
}
const range = (n) => Array.from({ length: n }, (_, i) => i)

// storm has every asker ask its share of the requests, one after another, all askers at once, and counts what was admitted.
async function storm(askers) {
  let admitted = 0
  await Promise.all(askers.map(async (ask) => {
    for (let i = 0; i < requests / askers.length; i++) if (await ask()) admitted++
  }))
  return admitted
}

// get asks an HTTP server over a connection of its own.
const get = (agent, serverPort) => new Promise((resolve, reject) => {
  http.get({ host, port: serverPort, agent }, (res) => { res.resume(); res.on('end', () => resolve(res)) }).on('error', reject)
})
const httpAskers = (ports) => range(clients).map((i) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  return async () => {
    const res = await get(agent, ports[i % ports.length])
    assert.ok([200, 429].includes(res.statusCode), `status ${res.statusCode}`)
    return res.statusCode === 200
  }
})

const libraries = {
  async 'rate-limiter-flexible'() {
    const { RateLimiterRedis, RateLimiterRes } = await import('rate-limiter-flexible')
    const name = key('rlf')
    const askers = range(clients).map(() => {
      const limiter = new RateLimiterRedis({ storeClient: open(), keyPrefix: name, points: limit, duration: 600 })
      return () => limiter.consume('user').then(() => true, (err) => {
        assert.ok(err instanceof RateLimiterRes, err)
        return false
      })
    })
    assert.equal(await storm(askers), limit)
  },

  async 'rate-limit-redis'() {
    const { default: express } = await import('express')
    const { rateLimit } = await import('express-rate-limit')
    const { RedisStore } = await import('rate-limit-redis')
    const prefix = key('rlr')
    const servers = await Promise.all(range(4).map(async () => {
      const client = open()
      const app = express()
      app.use(rateLimit({
        windowMs: 600_000, limit, validate: false, keyGenerator: () => 'user',
        store: new RedisStore({ prefix, sendCommand: (...args) => client.call(...args) }),
      }))
      app.get('/', (_, res) => res.send('in'))
      app.use((err, _req, res, _next) => res.status(500).send(String(err)))
      const server = app.listen(0, host)
      await once(server, 'listening')
      return server
    }))
    assert.equal(await storm(httpAskers(servers.map((s) => s.address().port))), limit)
    servers.forEach((s) => s.close())
  },

  async '@fastify/rate-limit'() {
    const { default: fastify } = await import('fastify')
    const { default: rateLimit } = await import('@fastify/rate-limit')
    const nameSpace = key('frl')
    const apps = await Promise.all(range(4).map(async () => {
      const app = fastify()
      await app.register(rateLimit, { max: limit, timeWindow: 600_000, redis: open(), nameSpace, keyGenerator: () => 'user', skipOnError: false })
      app.get('/', async () => 'in')
      await app.listen({ host, port: 0 })
      return app
    }))
    assert.equal(await storm(httpAskers(apps.map((a) => a.server.address().port))), limit)
    await Promise.all(apps.map((a) => a.close()))
  },

  async bottleneck() {
    const { default: Bottleneck } = await import('bottleneck')
    const id = key('bn')
    let admitted = 0
    let dropped = 0
    const failures = []
    const limiters = range(clients).map(() => new Bottleneck({
      id, datastore: 'ioredis', Redis, clientOptions: { host, port }, clearDatastore: false, reservoir: limit,
    }))
    limiters.forEach((l) => l.on('error', (err) => failures.push(err)))
    await Promise.all(limiters.map((l) => l.ready()))
    const jobs = limiters.flatMap((limiter) => range(requests / clients).map(
      () => limiter.schedule(async () => { admitted++ }).catch(() => { dropped++ })))
    while (admitted < limit) await new Promise((r) => setTimeout(r, 20))
    await new Promise((r) => setTimeout(r, 500)) // time for more than the limit to be admitted, if that were possible
    await Promise.all(limiters.map((l) => l.stop({ dropWaitingJobs: true })))
    await Promise.all(jobs)
    assert.deepEqual(failures, [])
    assert.deepEqual({ admitted, dropped }, { admitted: limit, dropped: requests - limit })
    await Promise.all(limiters.map((l) => l.disconnect(false)))
  },

  async bullmq() {
    const { Queue, Worker } = await import('bullmq')
    const name = `bull-${process.pid}-${Date.now()}`
    const max = 2_500
    const duration = 1_000
    const connection = () => open({ maxRetriesPerRequest: null })
    const queue = new Queue(name, { connection: connection() })
    for (let i = 0; i < requests; i += 1000) await queue.addBulk(range(1000).map((j) => ({ name: 'job', data: { n: i + j } })))
    const seen = new Map()
    const times = []
    const failures = []
    let finished
    const all = new Promise((r) => { finished = r })
    const workers = range(clients).map(() => {
      const worker = new Worker(name, async (job) => {
        seen.set(job.data.n, (seen.get(job.data.n) ?? 0) + 1)
        times.push(Date.now())
        if (times.length === requests) finished()
      }, { connection: connection(), concurrency: 10, limiter: { max, duration } })
      worker.on('error', (err) => failures.push(err))
      return worker
    })
    await all
    await Promise.all(workers.map((w) => w.close()))
    await queue.close()
    assert.deepEqual(failures, [])
    assert.equal(seen.size, requests)
    assert.ok([...seen.values()].every((n) => n === 1), 'a job ran twice')
    // max jobs for each window, and a window begins with its first job: the last window cannot begin earlier than this.
    assert.ok(times.at(-1) - times[0] >= (requests / max - 1) * duration, `all done in ${times.at(-1) - times[0]} ms`)
  },

  async ratelimiter() {
    const { default: Limiter } = await import('ratelimiter')
    const id = key('tj')
    const askers = range(clients).map(() => {
      const limiter = new Limiter({ id, db: open(), max: limit, duration: 600_000 })
      return () => new Promise((resolve, reject) => limiter.get((err, info) => (err ? reject(err) : resolve(info.remaining > 0))))
    })
    assert.equal(await storm(askers), limit)
  },

  async 'redis-gcra'() {
    const { default: RedisGCRA } = await import('redis-gcra')
    const name = key('gcra')
    const askers = range(clients).map(() => {
      const limiter = RedisGCRA({ redis: open(), burst: limit, rate: 1, period: 3_600_000 })
      return async () => !(await limiter.limit({ key: name })).limited
    })
    assert.equal(await storm(askers), limit)
  },
}

for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(libraries)) {
  await step(name, libraries[name])
  opened.splice(0).forEach((client) => client.disconnect())
}
done()
