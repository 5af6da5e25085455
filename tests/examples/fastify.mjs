// A Fastify application that allows each client address ten requests at once and five a second. Install fastify and redis, then:
//
//	REDIS_URL=redis://127.0.0.1:6379 PORT=3000 node fastify.mjs
import fastify from 'fastify'
import { ask } from './limiter.mjs'

const app = fastify()

app.addHook('onRequest', async (request, reply) => {
  const [limited, , , retryAfter] = await ask('RL.GCRA', `ip:${request.ip}`, '10', '5', '1s')
  if (limited) return reply.code(429).header('Retry-After', Math.ceil(retryAfter / 1000)).send('too many requests\n')
})

app.get('/', async () => 'hello\n')
await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })
