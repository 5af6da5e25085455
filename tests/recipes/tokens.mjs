const callTimeout = 120_000 // ms

// complete makes one call of a model within the user's limits: redis is an ioredis client, and call returns how many tokens it has used.
export async function complete(redis, user, estimate, call) {
  const [limited, which, id, verdicts] = await redis.call('RL.RESERVE', 3,
    'llm-requests', `rl:llm:requests:${user}`, 'llm-tokens', `rl:llm:tokens:${user}`, 'llm-parallel', `rl:llm:calls:${user}`,
    'COSTS', 1, Math.ceil(estimate), 1, 'TTL', callTimeout)
  if (limited) {
    const [, limit, , retryAfter] = verdicts[which]
    if (retryAfter < 0) throw new Error(`can never pass: the limit is ${limit}`)
    throw new Error(`over the limit: try again in ${retryAfter} ms`)
  }
  let tokens
  try {
    tokens = await call(AbortSignal.timeout(callTimeout))
  } catch (err) {
    await redis.call('RL.CANCEL', id).catch(() => {}) // else the server cancels at the TTL
    throw err
  }
  await redis.call('RL.SETTLE', id, 'ACTUALS', 1, Math.ceil(tokens), 0) // not cancelled if this fails: the work was done
}
