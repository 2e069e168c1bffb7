import { describe, expect, it } from 'vitest'
import { renderFailure, type ToolFailure } from '../../../src/calls/tool-failure.ts'
import { failureReply } from '../../../src/integrations/mcp-server/call-reply.ts'
import { ApiError, invalidRequest } from '../../../src/lib/api-error.ts'

const blocked = new ApiError('invalid_request', 'A policy blocks this call.', { code: 'dlp_blocked' })
const limited = new ApiError('rate_limited', 'Your limit is reached.', { retryAfterSeconds: 1 })
const candidates = [{ id: 'conn_1', displayName: 'Work' }]

interface Rendered {
  failure: ToolFailure
  /** Status and code of the audit record. */
  record: string
  /** The kind of error for a client of MCP: `-32000 <reason>`, the code of a tool's error, or `refusal`. */
  mcp: string
  told: RegExp
  /** What a model reads. */
  model: RegExp
}

const FAILURES: Record<string, Rendered> = {
  'a limit': {
    failure: { kind: 'refused', error: limited },
    record: '429 rate_limited',
    mcp: 'refusal',
    told: /Your limit/,
    model: /^Your limit/,
  },
  'a right': {
    failure: { kind: 'tool_forbidden', tool: 'find' },
    record: '403 tool_not_allowed',
    mcp: '-32602',
    told: /no tool named crm_find/,
    model: /switched off for this caller/,
  },
  'no tool': {
    failure: { kind: 'tool_unknown' },
    record: '400 tool_not_allowed',
    mcp: '-32602',
    told: /no tool named crm_find/,
    model: /not available any more/,
  },
  'a tool that is off': {
    failure: { kind: 'tool_disabled' },
    record: '400 tool_disabled',
    mcp: '-32601',
    told: /crm_find is switched off/,
    model: /switched off/,
  },
  'no approval': {
    failure: { kind: 'approval_required' },
    record: '403 approval_required',
    mcp: 'approval_required',
    told: /needs an approval/,
    model: /needs an approval/,
  },
  'a used approval': {
    failure: { kind: 'approval_used' },
    record: '403 approval_used',
    mcp: 'approval_used',
    told: /for another call/,
    model: /for another call/,
  },
  'no connection': {
    failure: { kind: 'connection_required', message: 'Connect it.' },
    record: '400 connection_required',
    mcp: 'connection_required',
    told: /Connect it.*"retryable\\":false/,
    model: /^Connect it.$/,
  },
  'an unknown connection': {
    failure: { kind: 'connection_unknown', message: 'None.' },
    record: '400 connection_unknown',
    mcp: 'not_found',
    told: /None/,
    model: /^None.$/,
  },
  'several connections': {
    failure: { kind: 'connection_ambiguous', message: 'Two.', candidates },
    record: '400 connection_ambiguous',
    mcp: 'connection_ambiguous',
    told: /"connections\\":\[.*display_name\\":\\"Work/,
    model: /Work \(conn_1\)/,
  },
  'a credential': {
    failure: { kind: 'credentials_unavailable', message: 'Revoked.', integrationId: 'crm', hint: 'Connect.' },
    record: '502 credentials_unavailable',
    mcp: '-32000 credentials_unavailable',
    told: /"integrationId":"crm","hint":"Connect."/,
    model: /^Revoked. Connect.$/,
  },
  'blocked arguments': {
    failure: { kind: 'dlp_blocked', part: 'arguments', error: blocked },
    record: '400 dlp_blocked',
    mcp: '-32000 dlp_blocked',
    told: /A policy blocks/,
    model: /^A policy blocks/,
  },
  'a blocked result': {
    failure: { kind: 'dlp_blocked', part: 'result', error: blocked },
    record: '400 dlp_blocked',
    mcp: '-32000 dlp_blocked',
    told: /"A policy blocks/,
    model: /^The result was withheld. A policy blocks/,
  },
  'no policy for arguments': {
    failure: { kind: 'dlp_unavailable', part: 'arguments' },
    record: '500 dlp_unavailable',
    mcp: '-32000 dlp_unavailable',
    told: /to the arguments/,
    model: /to the arguments/,
  },
  'no policy': {
    failure: { kind: 'dlp_unavailable', part: null },
    record: '500 dlp_unavailable',
    mcp: '-32000 dlp_unavailable',
    told: /could not be applied\."/,
    model: /could not be applied\.$/,
  },
  'no policy for a result': {
    failure: { kind: 'dlp_unavailable', part: 'result' },
    record: '500 dlp_unavailable',
    mcp: '-32000 dlp_unavailable',
    told: /to the result/,
    model: /^The result was withheld/,
  },
  'an image': {
    failure: { kind: 'dlp_uninspectable_content', contentKind: 'image' },
    record: '403 dlp_uninspectable_content',
    mcp: '-32000 dlp_uninspectable_content',
    told: /"contentKind":"image"/,
    model: /^The result was withheld.*image/,
  },
  'a large result': {
    failure: { kind: 'result_too_large', bytes: 9 },
    record: '500 tool_result_too_large',
    mcp: 'tool_result_too_large',
    told: /was executed.*9 bytes/,
    model: /was executed.*9 bytes/,
  },
  'a slow tool': {
    failure: { kind: 'timed_out', milliseconds: 2_000 },
    record: '500 tool_timed_out',
    mcp: 'tool_timed_out',
    told: /longer than 2 seconds/,
    model: /longer than 2 seconds/,
  },
  'a caller that left': {
    failure: { kind: 'aborted' },
    record: '499 client_left',
    mcp: 'client_left',
    told: /aborted/,
    model: /aborted/,
  },
  'a broken tool': {
    failure: { kind: 'tool_broken' },
    record: '500 tool_failed',
    mcp: 'tool_failed',
    told: /The tool failed/,
    model: /^The tool failed.$/,
  },
  'an answer of the tool': {
    failure: { kind: 'failed', error: invalidRequest('No city.'), retryable: true },
    record: '400 invalid_body',
    mcp: 'invalid_body',
    told: /No city.*"retryable\\":true/,
    model: /^No city.$/,
  },
}

function forMcp(failure: ToolFailure) {
  const reply = failureReply(failure, { kind: 'integration', name: 'crm_find', isDelegated: false })
  if (reply.kind === 'refusal') return { mcp: 'refusal', text: reply.error.message }
  if (reply.kind === 'error') {
    const { code, data } = reply.error
    return { mcp: [code, data?.reason].filter(Boolean).join(' '), text: JSON.stringify(reply.error) }
  }
  const { content, isError } = reply.result as { content: Array<{ text: string }>; isError: boolean }
  expect(isError).toBe(true)
  const { code } = JSON.parse(content[0]?.text ?? '{}') as { code: string }
  return { mcp: code, text: JSON.stringify(content) }
}

describe('a tool call without an answer, because of', () => {
  it.each(Object.entries(FAILURES))('%s', (_, { failure, record, mcp, told, model }) => {
    const { status, errorCode, forModel } = renderFailure(failure)
    expect(`${status} ${errorCode}`).toBe(record)
    expect(forModel).toMatch(model)
    const reply = forMcp(failure)
    expect(reply.mcp).toBe(mcp)
    expect(reply.text).toMatch(told)
  })
})

describe('a tool of the platform without an answer', () => {
  const codeOf = (failure: ToolFailure, readOnlyHint: boolean) => {
    const hints = { readOnlyHint, openWorldHint: false }
    const reply = failureReply(failure, { kind: 'platform', tool: { name: 'platform_find', hints } })
    const { content } = (reply as unknown as { result: { content: Array<{ text: string }> } }).result
    return JSON.parse(content[0]?.text ?? '{}') as unknown
  }

  it('can be called again where it has no effects, unless its result is too large', () => {
    const slow: ToolFailure = { kind: 'timed_out', milliseconds: 1_000 }
    expect(codeOf(slow, true)).toMatchObject({ code: 'unavailable', retryable: true })
    expect(codeOf(slow, false)).toMatchObject({ code: 'unavailable', retryable: false })
    const large: ToolFailure = { kind: 'result_too_large', bytes: 9 }
    expect(codeOf(large, true)).toMatchObject({ code: 'internal', retryable: false })
  })
})
