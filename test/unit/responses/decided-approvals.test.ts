import { expect, it } from 'vitest'
import { decidedApprovals } from '../../../src/responses/context/decided-approvals.ts'
import { newApprovalId } from '../../../src/responses/model/response-ids.ts'
import { itemOf, NOTHING_OPENS } from './items.ts'

const OWNER = { organizationId: 'o', userId: 'u' }
const CALL = { name: 'read', server_label: 'wiki', arguments: '{}' }

it('has the result of a call once, however many requests for approval have its id', () => {
  const ring = new Map([['k', new Uint8Array(32)]])
  const id = newApprovalId(ring, { owner: OWNER, server: 'wiki', tool: 'read', arguments: '{}' })
  const requests = Array.from({ length: 50 }, () => itemOf({ type: 'mcp_approval_request', id, ...CALL }))
  const answered = { call_id: 'call_1', approval_request_id: id, output: 'the page' }
  const call = itemOf({ type: 'mcp_call', ...answered, ...CALL })
  const forms = decidedApprovals([...requests, call])
  const shown = requests.flatMap((request) => {
    const form = forms.get(request)
    if (typeof form !== 'function') return []
    const { items, results } = form(request, NOTHING_OPENS)
    return [...items, ...results].map((bytes) => new TextDecoder().decode(bytes))
  })
  expect(shown.filter((text) => text.includes('the page'))).toHaveLength(1)
  expect(forms.get(call)).toBe('nothing')
})
