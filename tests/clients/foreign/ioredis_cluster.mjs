// ioredis's client in cluster mode, versions 5 and 6: node ioredis_cluster.mjs ioredis5
import { assert, done, host, port, step } from './steps.mjs'

const { Cluster } = await import(process.argv[2])
const cluster = new Cluster([{ host, port }])

await step('connect', async () => {
  for (let i = 0; i < 200; i++) assert.equal(await cluster.set('ioc:' + i, i, 'PX', 60_000), 'OK')
  assert.equal(await cluster.get('ioc:199'), '199')
  assert.equal(cluster.nodes('master').length, 1)
})

await step('pipeline', async () => {
  const pipeline = cluster.pipeline()
  for (let i = 0; i < 1000; i++) pipeline.incr('{ioc}n')
  assert.deepEqual((await pipeline.exec()).at(-1), [null, 1000])
})

await step('transaction', async () => {
  const replies = await cluster.multi().set('{ioc}t', 1).incr('{ioc}t').exec()
  assert.deepEqual(replies, [[null, 'OK'], [null, 2]])
})

await step('limiter', async () => {
  cluster.defineCommand('take', { numberOfKeys: 1, lua: "return redis.call('RL.GCRA', KEYS[1], 20, 1, '1d')[1]" })
  const verdicts = await Promise.all(Array.from({ length: 200 }, (_, i) => (i % 2 ? cluster.take('ioc:user') : cluster.call('RL.GCRA', 'ioc:user', 20, 1, '1d').then((v) => v[0]))))
  assert.equal(verdicts.filter((limited) => limited === 0).length, 20)
})

cluster.disconnect()
done()
