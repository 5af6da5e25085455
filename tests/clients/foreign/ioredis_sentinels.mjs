// ioredis by way of sentinels, versions 5 and 6: node ioredis_sentinels.mjs ioredis5
import { assert, done, step } from './steps.mjs'

const { Redis } = await import(process.argv[2])
const sentinels = process.env.HEADGATE_SENTINELS.split(',').map((address) => {
  const [host, port] = address.split(':')
  return { host, port: Number(port) }
})
const name = process.env.HEADGATE_NAME
const redis = new Redis({ sentinels, name })
const port = async (client) => /tcp_port:(\d+)/.exec(await client.info('server'))[1]
const first = await port(redis)

await step('connect', async () => {
  assert.equal((await redis.role())[0], 'master')
  assert.equal(await redis.set('ios:k', 'v'), 'OK')
  for (let i = 0; i < 20; i++) assert.equal((await redis.call('RL.FIXED', 'ios:user', 20, '1d'))[0], 0)
  assert.equal(await redis.wait(1, 5000), 1)
})

await step('replica', async () => {
  const replica = new Redis({ sentinels, name, role: 'slave' })
  assert.equal(await replica.get('ios:k'), 'v')
  assert.notEqual(await port(replica), first)
  replica.disconnect()
})

await step('failover', async () => {
  const sentinel = new Redis(sentinels[0])
  const pause = () => new Promise((resolve) => setTimeout(resolve, 20))
  while ((await sentinel.call('SENTINEL', 'FAILOVER', name).catch((err) => err.message)) !== 'OK') await pause()
  // The connection is closed when the server becomes a replica, and ioredis asks the sentinels again.
  while ((await port(redis).catch(() => first)) === first) await pause()
  sentinel.disconnect()
})

await step('limits hold', async () => {
  assert.equal((await redis.role())[0], 'master')
  assert.equal(await redis.get('ios:k'), 'v')
  assert.equal((await redis.call('RL.FIXED', 'ios:user', 20, '1d'))[0], 1)
  assert.equal(await redis.set('ios:k', 'w'), 'OK')
})

redis.disconnect()
done()
