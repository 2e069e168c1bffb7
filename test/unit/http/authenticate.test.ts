import { Hono } from 'hono'
import { expect, it } from 'vitest'
import type { AppEnv } from '../../../src/http/context.ts'
import { authenticate } from '../../../src/http/middleware/authenticate.ts'
import { createApiKey } from '../../../src/identity/api-key.ts'
import { configuration } from '../calls/fixtures.ts'

const app = new Hono<AppEnv>()
app.use(async (context, next) => {
  const deps = {
    configuration: configuration(),
    clock: Date.now,
    countRejectedCall: async () => {},
    waitUntil() {},
  }
  context.set('deps', deps as never)
  context.set('surface', 'chat_completions')
  context.set('host', 'base')
  await next()
}, authenticate)
// A key that is looked up fails here, because there is no database.
app.onError(
  (error) => new Response(error.message, { status: 'status' in error ? Number(error.status) : 500 }),
)

it.each([
  ['without Authorization is looked up', {}, 500],
  ['beside an empty Authorization is refused', { authorization: '' }, 401],
  ['beside an Authorization without a key is refused', { authorization: 'Bearer' }, 401],
])('a key in x-api-key %s', async (_, headers: Record<string, string>, status) => {
  const answer = await app.request('/v1/models', { headers: { ...headers, 'x-api-key': createApiKey().key } })
  expect(answer.status).toBe(status)
})
