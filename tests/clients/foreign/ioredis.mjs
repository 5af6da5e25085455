// ioredis, versions 5 and 6: node ioredis.mjs ioredis5
import { assert, done, everyByte, freshScript, host, port, step } from './steps.mjs'

const { default: Redis } = await import(process.argv[2])
const open = () => new Redis({ host, port })
const redis = open()

await step('connect', async () => {
  assert.equal(await redis.ping(), 'PONG')
  assert.equal(await redis.set('io:k', 'v', 'PX', 60_000), 'OK')
  assert.equal(await redis.get('io:k'), 'v')
  assert.equal(await redis.get('io:absent'), null)
  await assert.rejects(redis.incr('io:k'), /not an integer/)
})

await step('pipeline', async () => {
  await redis.del('io:n')
  const pipeline = redis.pipeline()
  for (let i = 0; i < 1000; i++) pipeline.incr('io:n')
  const replies = await pipeline.exec()
  assert.deepEqual(replies.at(-1), [null, 1000])
})

await step('transaction', async () => {
  const now = Date.now()
  const replies = await redis.multi()
    .del('io:w').zadd('io:w', now, 'a', now + 1, 'b').zremrangebyscore('io:w', 0, now).zcard('io:w').pexpire('io:w', 1000).exec()
  assert.deepEqual(replies.map(([, reply]) => reply), [0, 2, 1, 1, 1])
})

await step('watch', async () => {
  const other = open()
  await redis.watch('io:watched')
  await other.set('io:watched', 'changed')
  assert.equal(await redis.multi().set('io:watched', 'mine').exec(), null)
  assert.equal(await redis.get('io:watched'), 'changed')
  other.disconnect()
})

await step('script', async () => {
  redis.defineCommand('stamp', { numberOfKeys: 1, lua: freshScript() }) // EVALSHA first, EVAL after NOSCRIPT
  assert.deepEqual(await redis.stamp('io:k', 'x', 41), ['io:k', 'x', 42])
  assert.deepEqual(await redis.stamp('io:k', 'y', 1), ['io:k', 'y', 2])
  await assert.rejects(redis.evalsha('0'.repeat(40), 0), /^ReplyError: NOSCRIPT No matching script/)
  await assert.rejects(redis.eval('return redis.error_reply("MYERR told so")', 0), /MYERR told so/)
})

await step('pubsub', async () => {
  const subscriber = open()
  const heard = []
  subscriber.on('message', (channel, text) => heard.push([channel, text]))
  subscriber.on('pmessage', (pattern, channel, text) => heard.push([pattern, channel, text]))
  assert.equal(await subscriber.subscribe('io:news'), 1)
  assert.equal(await subscriber.psubscribe('io:n*'), 2)
  assert.equal(await redis.publish('io:news', 'hello'), 2)
  while (heard.length < 2) await new Promise((r) => setTimeout(r, 5))
  assert.deepEqual(heard, [['io:news', 'hello'], ['io:n*', 'io:news', 'hello']])
  await subscriber.unsubscribe('io:news')
  await subscriber.punsubscribe('io:n*')
  assert.equal(await subscriber.ping(), 'PONG')
  subscriber.disconnect()
})

await step('blocking', async () => {
  const waiter = open()
  await redis.del('io:q', 'io:zq')
  const popped = waiter.blpop('io:none', 'io:q', 10)
  await redis.rpush('io:q', 'job')
  assert.deepEqual(await popped, ['io:q', 'job'])
  const lowest = waiter.bzpopmin('io:zq', 10)
  await redis.zadd('io:zq', 1.5, 'member')
  assert.deepEqual((await lowest).map(String), ['io:zq', 'member', '1.5'])
  assert.equal(await waiter.brpop('io:none', 0.05), null)
  waiter.disconnect()
})

await step('scan', async () => {
  const names = new Set()
  const pipeline = redis.pipeline()
  for (let i = 0; i < 500; i++) pipeline.set(`io:scan:${i}`, i)
  await pipeline.exec()
  for await (const keys of redis.scanStream({ match: 'io:scan:*', count: 50 })) keys.forEach((k) => names.add(k))
  assert.equal(names.size, 500)
})

await step('binary', async () => {
  await redis.set('io:bin', everyByte)
  assert.deepEqual(await redis.getBuffer('io:bin'), everyByte)
  await redis.hset('io:h', 'field', everyByte)
  assert.deepEqual(await redis.hgetBuffer('io:h', 'field'), everyByte)
  assert.deepEqual(Object.keys(await redis.hgetall('io:h')), ['field'])
})

await step('throttle', async () => {
  await redis.del('io:cell')
  assert.deepEqual(await redis.call('CL.THROTTLE', 'io:cell', 15, 30, 60), [0, 16, 15, -1, 2])
})

done()
