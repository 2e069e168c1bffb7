import { describe, expect, it } from 'vitest'
import { Inspection, type TextEngine } from '../../../src/dlp/inspection.ts'
import { inspectJson } from '../../../src/dlp/json-inspection.ts'
import { OPERATIONS } from '../../../src/gateway/protocols/operations.ts'
import { inspectRequest } from '../../../src/gateway/protocols/request-inspection.ts'
import { drained } from '../../../src/lib/slices.ts'

/** Replaces every text. */
const engine: TextEngine = {
  policyVersion: 'test',
  inspect: () => new Uint8Array([0x78]),
  findings: () => [],
}
const tooComplex = expect.objectContaining({ code: 'dlp_too_complex', status: 400 })
const list = (count: number) => `[${Array(count).fill('"a"').join(',')}]`

describe('a body with more replaced texts than are held', () => {
  it.each([
    ['a member of a request', (texts: number) => request(memberOf(list(texts)))],
    ['the input of a tool', (texts: number) => request(inputOf(list(texts)))],
    ['the result of a tool', (texts: number) => result(list(texts))],
  ])('is refused: %s', (_, inspect) => {
    expect(() => inspect(10_000)).not.toThrow()
    expect(() => inspect(201_000)).toThrow(tooComplex)
  })
})

const HEAD = '{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}'
const memberOf = (texts: string) => `${HEAD}],"extra":${texts}}`
const inputOf = (texts: string) =>
  `${HEAD},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":${texts}}}]}]}`

function request(body: string): void {
  const { protocol } = OPERATIONS.messages
  const outline = drained(protocol.outline(new TextEncoder().encode(body)))
  drained(inspectRequest(outline, protocol, new Inspection(engine)))
}

function result(json: string): void {
  drained(inspectJson(new Inspection(engine), new TextEncoder().encode(json), 'tool_result'))
}
