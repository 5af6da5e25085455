// take asks a policy about a key: redis is an ioredis client.
export async function take(redis, policy, key) {
  const [, , [[limited, limit, remaining, retryAfter, resetAfter]]] = await redis.call('RL.TAKE', 1, policy, key)
  return { limited: limited === 1, limit, remaining, retryAfter, resetAfter } // ms
}

// dryRun sets a policy that limits nobody and only counts what it would limit: dryRun(redis, 'api', 'GCRA 100 100 1m').
export const dryRun = (redis, policy, words) => redis.call('RL.POLICY', 'SET', policy, ...words.split(' '), 'SHADOW')

// wouldLimit is the share of a policy's calls that it would have limited.
export async function wouldLimit(redis, policy) {
  const line = (await redis.info('limiters')).split('\r\n').find((l) => l.startsWith(`policy_${policy}:`)) ?? ''
  const n = Object.fromEntries([...line.matchAll(/(\w+)=(\d+)/g)].map(([, name, value]) => [name, Number(value)]))
  return (n.shadow_limited ?? 0) / (n.allowed + n.limited + (n.shadow_limited ?? 0)) || 0
}

// enforce sets the same policy for real. Keys keep what they have used.
export const enforce = (redis, policy, words) => redis.call('RL.POLICY', 'SET', policy, ...words.split(' '))

// override gives one key other words, and exempt none: override(redis, 'api', 'user:acme', 'GCRA 1000 1000 1m').
export const override = (redis, policy, key, words) => redis.call('RL.POLICY', 'OVERRIDE', 'SET', policy, key, ...words.split(' '))
export const exempt = (redis, policy, key) => override(redis, policy, key, 'UNLIMITED')

// ban locks a key out by hand: ban(redis, 'api', 'user:mallory', '1h'). unban lets it in at once: it ends any block, and then forgets what the key
// has used, since a limit that is used up would limit the next call again.
export const ban = (redis, policy, key, duration) => redis.call('RL.BLOCK', policy, key, duration)
export async function unban(redis, policy, key) {
  const ended = await redis.call('RL.UNBLOCK', policy, key)
  await redis.call('RL.RESET', key)
  return ended === 1
}

// fields are the header fields of draft-ietf-httpapi-ratelimit-headers-11 for a policy over so many seconds.
export function fields(policy, window, { limited, limit, remaining, retryAfter, resetAfter }) {
  if (retryAfter > resetAfter) [remaining, resetAfter] = [0, retryAfter] // a block: what remains is of no use before its end
  return {
    ...(limit >= 0 && { // else there is no limit, but a block is possible
      'RateLimit-Policy': `"${policy}";q=${limit};w=${window}`,
      RateLimit: `"${policy}";r=${remaining};t=${Math.ceil(resetAfter / 1000)}`,
    }),
    ...(limited && retryAfter >= 0 && { 'Retry-After': String(Math.ceil(retryAfter / 1000)) }),
  }
}
