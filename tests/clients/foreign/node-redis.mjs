// node-redis, versions 4 and 6: node node-redis.mjs redis4
import { assert, done, everyByte, freshScript, host, port, step } from './steps.mjs'

const { createClient, defineScript, commandOptions } = await import(process.argv[2])
const open = async () => {
  const client = createClient({ socket: { host, port } })
  client.on('error', (err) => console.error(err))
  return client.connect()
}
const old = process.argv[2] === 'redis4'
const redis = await open()

await step('connect', async () => {
  assert.equal(await redis.ping(), 'PONG')
  assert.equal(await redis.set('nr:k', 'v', { PX: 60_000 }), 'OK')
  assert.equal(await redis.get('nr:k'), 'v')
  assert.equal(await redis.get('nr:absent'), null)
  await assert.rejects(redis.incr('nr:k'), /not an integer/)
})

await step('pipeline', async () => {
  await redis.del('nr:n')
  const replies = await Promise.all(Array.from({ length: 1000 }, () => redis.incr('nr:n')))
  assert.equal(replies.at(-1), 1000)
})

await step('transaction', async () => {
  const now = Date.now()
  const replies = await redis.multi()
    .del('nr:w').zAdd('nr:w', [{ score: now, value: 'a' }, { score: now + 1, value: 'b' }])
    .zRemRangeByScore('nr:w', 0, now).zCard('nr:w').pExpire('nr:w', 1000).exec()
  assert.deepEqual(replies.map(Number), [0, 2, 1, 1, 1])
})

await step('watch', async () => {
  const other = await open()
  await redis.watch('nr:watched')
  await other.set('nr:watched', 'changed')
  await assert.rejects(redis.multi().set('nr:watched', 'mine').exec(), /watched keys has been changed/)
  assert.equal(await redis.get('nr:watched'), 'changed')
  other.destroy ? other.destroy() : await other.disconnect()
})

await step('script', async () => {
  const text = freshScript()
  const script = defineScript({
    NUMBER_OF_KEYS: 1,
    SCRIPT: text,
    transformArguments: (...args) => args.map(String),
    parseCommand: (parser, key, ...args) => { parser.pushKey(key); parser.push(...args.map(String)) },
    transformReply: (reply) => reply,
  })
  const client = await createClient({ socket: { host, port }, scripts: { stamp: script } }).connect()
  assert.deepEqual(await client.stamp('nr:k', 'x', 41), ['nr:k', 'x', 42])
  assert.deepEqual(await client.stamp('nr:k', 'y', 1), ['nr:k', 'y', 2])
  await assert.rejects(client.evalSha('0'.repeat(40)), /NOSCRIPT No matching script/)
  client.destroy ? client.destroy() : await client.disconnect()
})

await step('pubsub', async () => {
  const subscriber = await open()
  const heard = []
  await subscriber.subscribe('nr:news', (text, channel) => heard.push([channel, text]))
  await subscriber.pSubscribe('nr:n*', (text, channel) => heard.push(['*', channel, text]))
  assert.equal(await redis.publish('nr:news', 'hello'), 2)
  while (heard.length < 2) await new Promise((r) => setTimeout(r, 5))
  assert.deepEqual(heard, [['nr:news', 'hello'], ['*', 'nr:news', 'hello']])
  await subscriber.unsubscribe('nr:news')
  await subscriber.pUnsubscribe('nr:n*')
  assert.equal(await subscriber.ping(), 'PONG')
  subscriber.destroy ? subscriber.destroy() : await subscriber.disconnect()
})

await step('blocking', async () => {
  const waiter = await open()
  await redis.del(['nr:q', 'nr:zq'])
  const popped = waiter.blPop(['nr:none', 'nr:q'], 10)
  await redis.rPush('nr:q', 'job')
  assert.deepEqual({ ...await popped }, { key: 'nr:q', element: 'job' })
  const lowest = waiter.bzPopMin('nr:zq', 10)
  await redis.zAdd('nr:zq', { score: 1.5, value: 'member' })
  assert.deepEqual({ ...await lowest }, { key: 'nr:zq', value: 'member', score: 1.5 })
  assert.equal(await waiter.brPop('nr:none', 0.05), null)
  waiter.destroy ? waiter.destroy() : await waiter.disconnect()
})

await step('scan', async () => {
  await Promise.all(Array.from({ length: 500 }, (_, i) => redis.set(`nr:scan:${i}`, `${i}`)))
  const names = new Set()
  for await (const found of redis.scanIterator({ MATCH: 'nr:scan:*', COUNT: 50 })) {
    for (const name of [found].flat()) names.add(name) // version 4 gives one name at a time, version 6 a page
  }
  assert.equal(names.size, 500)
})

await step('binary', async () => {
  await redis.set('nr:bin', everyByte)
  await redis.hSet('nr:h', 'field', everyByte)
  if (old) {
    assert.deepEqual(await redis.get(commandOptions({ returnBuffers: true }), 'nr:bin'), everyByte)
  } else {
    const { RESP_TYPES } = await import(process.argv[2])
    const binary = redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
    assert.deepEqual(await binary.get('nr:bin'), everyByte)
    assert.deepEqual(await binary.hGet('nr:h', 'field'), everyByte)
  }
  assert.deepEqual(Object.keys(await redis.hGetAll('nr:h')), ['field'])
})

await step('throttle', async () => {
  await redis.del('nr:cell')
  assert.deepEqual(await redis.sendCommand(['CL.THROTTLE', 'nr:cell', '15', '30', '60']), [0, 16, 15, -1, 2])
})

done()
