import { describe, expect, it } from 'vitest'
import { checkStep } from '../../../src/agents/evaluations/checks.ts'
import { type Evidence, toolCallsOf } from '../../../src/agents/evaluations/evidence.ts'
import type { StepCheck } from '../../../src/wire/agents.ts'
import type { OutputItem } from '../../../src/wire/responses.ts'

const evidence = (output: string, tools: string[] | null = []): Evidence => ({
  instructions: '',
  output,
  toolCalls: tools?.map((name) => ({ name, content: '' })) ?? null,
})

describe('a check', () => {
  const schema = { type: 'object', required: ['n'] }
  it.each<[StepCheck, Evidence, Evidence]>([
    [{ type: 'not_empty' }, evidence('x'), evidence(' \n')],
    [{ type: 'contains', text: 'Ada' }, evidence('Hi Ada'), evidence('Hi ada')],
    [{ type: 'not_contains', text: 'Ada' }, evidence('Hi'), evidence('Hi Ada')],
    [{ type: 'json_schema', schema }, evidence('{"n":1}'), evidence('{"m":1}')],
    [{ type: 'json_schema', schema }, evidence('{"n":1}'), evidence('n')],
    [{ type: 'tool_called', tool: 'shell' }, evidence('', ['a', 'shell']), evidence('', ['shell_x'])],
    [{ type: 'tool_not_called', tool: 'shell' }, evidence('', ['a']), evidence('', ['shell'])],
  ])('%j passes and fails', (check, passing, failing) => {
    expect(checkStep([check], passing)).toEqual([{ type: check.type, passed: true }])
    expect(checkStep([check], failing)).toEqual([{ type: check.type, passed: false }])
  })

  it('of tools cannot be decided without the calls', () => {
    const checks: StepCheck[] = [
      { type: 'tool_called', tool: 'shell' },
      { type: 'tool_not_called', tool: 'shell' },
    ]
    expect(checkStep(checks, evidence('', null)).map(({ passed }) => passed)).toEqual([null, null])
  })
})

describe('tool calls', () => {
  it('have the names under which tools are known, and their arguments and results', () => {
    const items = [
      { id: 'r', type: 'reasoning', summary: [] },
      {
        id: 'm',
        type: 'mcp_call',
        server_label: 'github',
        name: 'get_issue',
        arguments: '{"n":1}',
        output: 'Open',
      },
      { id: 's', type: 'service_call', name: 'read_file', arguments: '{}', error: 'missing', output: null },
      { id: 'w', type: 'web_search_call', action: { type: 'search', query: 'q' } },
      { id: 'o', type: 'web_search_call', action: { type: 'open_page', url: 'https://example.com/' } },
      { id: 'h', type: 'shell_call', action: { commands: ['ls'] }, output: [{ stdout: 'a' }] },
      { id: 'x', type: 'message', content: [] },
    ]
    expect(toolCallsOf(items as unknown as OutputItem[])).toEqual([
      { name: 'github_get_issue', content: '{"arguments":"{\\"n\\":1}","output":"Open"}' },
      { name: 'read_file', content: '{"arguments":"{}","error":"missing"}' },
      { name: 'web_search', content: '{"action":{"type":"search","query":"q"}}' },
      { name: 'open_page', content: '{"action":{"type":"open_page","url":"https://example.com/"}}' },
      { name: 'shell', content: '{"action":{"commands":["ls"]},"output":[{"stdout":"a"}]}' },
    ])
  })
})
