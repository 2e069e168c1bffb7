import { describe, expect, it } from 'vitest'
import { hostedChoice, modelChoice } from '../../../src/responses/tools/hosted-choice.ts'
import type { ServiceTool } from '../../../src/responses/tools/hosted-tool.ts'
import { toolRules } from '../../../src/responses/tools/tool-rules.ts'
import { responseSettings } from '../../../src/wire/responses.ts'

const hosted = (purpose: string, name: string, more: object) =>
  ({
    purpose,
    definition: { type: 'function', name },
    family: null,
    members: {},
    ...more,
  }) as unknown as ServiceTool

const SEARCH = hosted('hosted', 'web_search', { family: 'web_search' })
const READ = hosted('integration', 'wiki__read', { members: { name: 'read', server_label: 'wiki' } })
const WRITE = hosted('integration', 'wiki__write', { members: { name: 'write', server_label: 'wiki' } })
const FIND = hosted('search', 'search_tools', {
  family: 'platform',
  scope: { entries: [{ label: 'wiki' }, { label: 'mail' }] },
})
const ALL = [SEARCH, READ, WRITE, FIND]
const allowed = (...tools: unknown[]) => ({ type: 'allowed_tools', mode: 'auto', tools })

const CASES: Array<[entry: unknown, tools: ServiceTool[]]> = [
  [{ type: 'web_search_preview' }, [SEARCH]],
  [{ type: 'function', name: 'web_search' }, [SEARCH]],
  [{ type: 'function', name: 'wiki__read' }, [READ]],
  [{ type: 'mcp', server_label: 'wiki' }, [READ, WRITE, FIND]],
  [{ type: 'mcp', server_label: 'wiki', name: null }, [READ, WRITE, FIND]],
  [{ type: 'mcp', server_label: 'wiki', name: 'write' }, [WRITE, FIND]],
  [{ type: 'mcp', server_label: 'wiki', name: 'wiki__write' }, [WRITE, FIND]],
  [{ type: 'mcp', server_label: 'mail' }, [FIND]],
  [{ type: 'mcp', server_label: 'other', name: 'read' }, []],
  [{ type: 'file_search' }, []],
  [null, []],
  ['mcp', []],
]

describe('a choice of tools of this service', () => {
  it.each(CASES)('%j', (entry, tools) => {
    const mayRun = hostedChoice(allowed(entry))
    expect(ALL.filter((tool) => mayRun(tool))).toEqual(tools)
    const names = tools.map(({ definition: { name } }) => ({ type: 'function', name }))
    expect(modelChoice(allowed(entry), ALL)).toEqual(allowed(...(names.length > 0 ? names : [entry])))
  })

  it('names each tool to the model once, however often the caller does', () => {
    const entries = Array.from({ length: 1_000 }, () => ({ type: 'mcp', server_label: 'wiki' }))
    const choice = modelChoice(allowed(...entries, { type: 'web_search' }), [READ, WRITE, SEARCH])
    const names = ['wiki__read', 'wiki__write', 'web_search']
    expect(choice).toEqual(allowed(...names.map((name) => ({ type: 'function', name }))))
  })

  it('keeps entries of the caller’s own tools, in their places', () => {
    const own = { type: 'function', name: 'look' }
    const choice = allowed(
      own,
      { type: 'mcp', server_label: 'wiki', name: 'read' },
      { type: 'custom', name: 'c' },
    )
    expect(modelChoice(choice, ALL)).toEqual(
      allowed(own, ...['wiki__read', 'search_tools'].map((name) => ({ type: 'function', name })), {
        type: 'custom',
        name: 'c',
      }),
    )
  })
})

describe('a choice of tools of the caller', () => {
  const tools = [
    { type: 'function', name: 'look' },
    { type: 'function', name: 'see' },
    { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'look' }] },
  ]
  const purposes = (entry: unknown) => {
    const rules = toolRules(responseSettings.parse({ model: 'm', tools, tool_choice: allowed(entry) }), [])
    return ['look', 'see', 'n__look'].filter((name) => rules.purposeOf(name) === 'client')
  }

  it.each([
    [{ type: 'function', name: 'look' }, ['look', 'n__look']],
    [{ type: 'function', name: 'look', namespace: 'n' }, ['n__look']],
    [{ type: 'namespace', name: 'n' }, ['n__look']],
    [{ type: 'function', name: 'other' }, []],
    [null, []],
  ] as Array<[unknown, string[]]>)('%j', (entry, callable) => {
    expect(purposes(entry)).toEqual(callable)
  })
})
