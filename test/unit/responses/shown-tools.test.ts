import { describe, expect, it } from 'vitest'
import type { ToolFamily } from '../../../src/identity/tool-rights.ts'
import { shownTools } from '../../../src/responses/tools/hosted-choice.ts'
import type { HostedTool } from '../../../src/responses/tools/hosted-tool.ts'

const hosted = (families: readonly ToolFamily[]) => families.map((family) => ({ family }) as HostedTool)
const typesOf = (listed: string[], ...families: ToolFamily[]) =>
  shownTools(
    listed.map((type) => ({ type })),
    hosted(families),
  ).map(({ type }) => type)

describe('the tools that a response shows', () => {
  it.each<[string[], ToolFamily[], string[]]>([
    [[], [], []],
    [[], ['shell', 'files', 'web_search', 'browser'], ['shell', 'web_search', 'computer']],
    [[], ['shell'], ['shell']],
    [[], ['files'], ['file_operations']],
    [[], ['browser'], ['computer']],
    [['function'], ['files', 'browser'], ['function', 'file_operations', 'computer']],
    [['files'], ['files'], ['files']],
    [['files'], ['shell', 'files'], ['files', 'shell']],
    [['local_shell'], ['shell', 'files'], ['local_shell']],
    [
      ['web_search_2025_08_26', 'browser'],
      ['web_search', 'browser'],
      ['web_search_2025_08_26', 'browser'],
    ],
  ])('for %j with %j on are %j', (listed, on, shown) => {
    expect(typesOf(listed, ...on)).toEqual(shown)
  })

  it('are without those that the caller lists and that are off', () => {
    expect(typesOf(['shell', 'mcp', 'web_search'], 'files')).toEqual(['mcp', 'file_operations'])
    expect(typesOf(['computer_use_preview', 'custom'])).toEqual(['custom'])
  })

  it('keep the members of the entries of the caller', () => {
    const entry = { type: 'web_search', search_context_size: 'low' }
    expect(shownTools([entry], hosted(['web_search']))).toEqual([entry])
  })
})
