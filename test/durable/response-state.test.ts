import { env, runInDurableObject } from 'cloudflare:test'
import { expect, it } from 'vitest'
import type { ResponseDeps } from '../../src/responses/object/response-deps.ts'
import type { ResponseHead, StoredRequest } from '../../src/responses/object/response-head.ts'
import { ResponseState } from '../../src/responses/object/response-state.ts'

// No method that these tests call needs them.
const DEPS = {} as ResponseDeps

it('a request that has changed is what a restarted object reads: an approval is used once', async () => {
  const object = env.EVENT_LOG.get(env.EVENT_LOG.idFromName('response-state'))
  const read = await runInDurableObject(object, (_object, { storage: { sql } }) => {
    const state = new ResponseState(DEPS, sql)
    state.begin({ phase: 'between_turns' } as ResponseHead)
    state.store()
    const request = {
      hostedTools: [],
      integrations: { approved: [{ name: 'crm_add', arguments: '{}' }], offered: [] },
    } as unknown as StoredRequest
    state.storeRequest(request)
    request.integrations?.approved.splice(0)
    // After a later turn, and after the approval was used.
    state.storeRequest(request)
    const before = new ResponseState(DEPS, sql).request
    state.replaceRequest(request)
    return [before, new ResponseState(DEPS, sql).request]
  })
  expect(read).toMatchObject([
    { integrations: { approved: [{ name: 'crm_add' }] } },
    { integrations: { approved: [] } },
  ])
})
