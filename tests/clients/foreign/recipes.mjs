// The recipes for Node.js of docs/recipes.md, and their header fields beside express-rate-limit's of draft 8: node recipes.mjs
import { once } from 'node:events'
import http from 'node:http'
import { assert, done, host, port, step } from './steps.mjs'
import { Redis } from 'ioredis5'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import * as recipes from '../../recipes/policies.mjs'
import { complete } from '../../recipes/tokens.mjs'

const redis = new Redis({ host, port })

await step('dry run', async () => {
  assert.equal(await recipes.wouldLimit(redis, 'api'), 0)
  await recipes.dryRun(redis, 'api', 'FIXED 3 1h')
  for (let i = 0; i < 4; i++) assert.equal((await recipes.take(redis, 'api', 'u1')).limited, false)
  assert.equal(await recipes.wouldLimit(redis, 'api'), 0.25)
  await recipes.enforce(redis, 'api', 'FIXED 3 1h')
  assert.equal((await recipes.take(redis, 'api', 'u1')).limited, true)
})

await step('one customer', async () => {
  await recipes.override(redis, 'api', 'acme', 'FIXED 30 1h')
  await recipes.exempt(redis, 'api', 'monitoring')
  assert.equal((await recipes.take(redis, 'api', 'acme')).limit, 30)
  assert.equal((await recipes.take(redis, 'api', 'monitoring')).limit, -1)
  await recipes.ban(redis, 'api', 'mallory', '1h')
  const banned = await recipes.take(redis, 'api', 'mallory')
  assert.deepEqual(recipes.fields('api', 3600, { ...banned, retryAfter: 3_600_000 }), { 'RateLimit-Policy': '"api";q=3;w=3600', RateLimit: '"api";r=0;t=3600', 'Retry-After': '3600' })
  for (let i = 0; i < 4; i++) await redis.call('RL.FIXED', 'mallory', 3, '1h')
  assert.equal(await recipes.unban(redis, 'api', 'mallory'), true)
  assert.equal((await recipes.take(redis, 'api', 'mallory')).limited, false)
  await recipes.ban(redis, 'api', 'nolimit', '1h')
  await recipes.exempt(redis, 'api', 'nolimit')
  assert.ok(recipes.fields('api', 3600, await recipes.take(redis, 'api', 'nolimit'))['Retry-After'] > 3500)
  assert.equal(await recipes.unban(redis, 'api', 'mallory'), false)
})

await step('tokens of a language model', async () => {
  for (const policy of ['llm-requests GCRA 60 60 1m', 'llm-tokens FIXED 10000 1h', 'llm-parallel ACQUIRE 1 2m']) await redis.call('RL.POLICY', 'SET', ...policy.split(' '))
  const used = async () => 10_000 - (await redis.call('RL.FIXED', 'rl:llm:tokens:ann', 10_000, '1h', 'PEEK'))[2]
  await complete(redis, 'ann', 4000.2, async () => 1200.5)
  assert.equal(await used(), 1201)
  await assert.rejects(complete(redis, 'ann', 4000, async () => { throw new Error('the model has failed') }), /^Error: the model has failed$/)
  assert.equal(await used(), 1201)
  await assert.rejects(complete(redis, 'ann', 4000, async () => undefined), /ERR/)
  assert.equal(await used(), 5201, 'work that was done is not given back') // before the TTL
  await assert.rejects(complete(redis, 'bob', 10_001, async () => 0), /^Error: can never pass: the limit is 10000$/)
  await complete(redis, 'bob', 0, async () => 10_000)
  await assert.rejects(complete(redis, 'bob', 1, async () => 0), /^Error: over the limit: try again in \d+ ms$/)
})

// A member of a structured field, without express-rate-limit's pk, which the draft leaves to the server.
const member = (field) => {
  const [, name, parameters] = /^"([^"]*)"(.*)$/.exec(field.trim())
  const all = Object.fromEntries(parameters.split(';').filter((p) => p.trim()).map((p) => p.trim().split('=')))
  delete all.pk
  return { name, ...all }
}

await step('header fields beside draft 8', async () => {
  const app = express()
  app.use('/theirs', rateLimit({ windowMs: 60_000, limit: 3, standardHeaders: 'draft-8', legacyHeaders: false, identifier: 'user', validate: false, keyGenerator: () => 'u' }))
  await recipes.enforce(redis, 'user', 'FIXED 3 60s')
  app.use('/ours', async (_req, res, next) => {
    const verdict = await recipes.take(redis, 'user', 'fields')
    res.set(recipes.fields('user', 60, verdict))
    if (verdict.limited) res.status(429).send('limited')
    else next()
  })
  app.use((_, res) => res.send('in'))
  const server = app.listen(0, host)
  await once(server, 'listening')
  const get = (path) => new Promise((resolve, reject) => {
    http.get({ host, port: server.address().port, path }, (res) => { res.resume(); res.on('end', () => resolve(res)) }).on('error', reject)
  })
  for (let i = 0; i < 5; i++) {
    const [theirs, ours] = [await get('/theirs'), await get('/ours')]
    assert.equal(ours.statusCode, theirs.statusCode)
    assert.deepEqual(member(ours.headers['ratelimit-policy']), member(theirs.headers['ratelimit-policy']))
    const [limit, expected] = [member(ours.headers.ratelimit), member(theirs.headers.ratelimit)]
    assert.ok(Math.abs(limit.t - expected.t) <= 30, `t=${limit.t}, theirs ${expected.t}`) // the windows do not begin at the same time
    assert.deepEqual({ ...limit, t: 0 }, { ...expected, t: 0 })
    assert.equal('retry-after' in ours.headers, 'retry-after' in theirs.headers)
  }
  server.close()
})

redis.disconnect()
done()
