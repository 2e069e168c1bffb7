import { env, runInDurableObject } from 'cloudflare:test'
import { expect, it } from 'vitest'
import type { OfferedTool } from '../../src/responses/model/offered-tools.ts'
import type { ResponseHead, StoredRequest } from '../../src/responses/model/response-head.ts'
import type { ResponseDeps } from '../../src/responses/response-deps.ts'
import { CommitGroup } from '../../src/responses/storage/commit-group.ts'
import { CommitRows } from '../../src/responses/storage/commit-rows.ts'
import { LiveParts } from '../../src/responses/storage/live-parts.ts'
import { wholeStorage } from '../../src/responses/storage/slice.ts'
import { ResponseState } from '../../src/responses/store/response-state.ts'

// No method that these tests call needs them.
const DEPS = {} as ResponseDeps

it('a request that has changed is what a restarted object reads: tools that were found are offered', async () => {
  const object = env.EVENT_LOG.get(env.EVENT_LOG.idFromName('response-state'))
  const read = await runInDurableObject(object, (_object, { storage }) => {
    const state = new ResponseState(DEPS, wholeStorage(storage))
    state.begin({ phase: 'between_turns' } as ResponseHead)
    state.store({}, false)
    const request = {
      hostedTools: [],
      integrations: { offered: [], search: null },
    } as unknown as StoredRequest
    state.storeRequest(request)
    request.integrations?.offered.push({ tool: { name: 'crm_add' } } as OfferedTool)
    // After a later turn, and after the search.
    state.storeRequest(request)
    const before = new ResponseState(DEPS, wholeStorage(storage)).request
    state.replaceRequest(request)
    return [before, new ResponseState(DEPS, wholeStorage(storage)).request]
  })
  expect(read).toMatchObject([
    { integrations: { offered: [] } },
    { integrations: { offered: [{ tool: { name: 'crm_add' } }] } },
  ])
})

it('a head too long for the row of its response is a value, until it is short again', async () => {
  const object = env.EVENT_LOG.get(env.EVENT_LOG.idFromName('long-head'))
  const read = await runInDurableObject(object, (_object, { storage }) => {
    let row: string | null = null
    const group = new CommitGroup(new CommitRows(storage, 0), () => 0)
    const slice = () => {
      const live = new LiveParts(0, group, {
        read: () => row,
        write: (head) => {
          row = head
        },
      })
      return { ...wholeStorage(storage), live }
    }
    const seen: Array<[boolean, string | undefined]> = []
    const state = new ResponseState(DEPS, slice())
    state.begin({ phase: 'ending', model: '', unsettled: [] as unknown } as ResponseHead)
    state.store({}, false)
    state.enter('ended')
    for (const model of ['short', 'x'.repeat(300_000), 'again']) {
      state.change({ model })
      state.save()
      seen.push([row !== null, new ResponseState(DEPS, slice()).head?.model])
    }
    return seen
  })
  expect(read).toEqual([
    [true, 'short'],
    [false, 'x'.repeat(300_000)],
    [true, 'again'],
  ])
})
