import { describe, expect, it } from 'vitest'
import { rankTools } from '../../../src/integrations/platform-tools/tool-ranking.ts'
import type { CatalogueTool } from '../../../src/integrations/types.ts'
import { drained } from '../../../src/lib/slices.ts'

const tool = (name: string, description = '', title?: string, integration = 'github'): CatalogueTool =>
  ({
    name: `${integration}_${name}`,
    integration: { slug: integration, displayName: integration },
    definition: { name, description, ...(title !== undefined && { title }), inputSchema: { type: 'object' } },
  }) as unknown as CatalogueTool

const TOOLS = [
  tool('list_pull_requests', 'Lists the pull requests of a repository.'),
  tool('createIssue', 'Creates an issue in a repository.'),
  tool('search_code', 'Searches code in all repositories.'),
  tool('send_message', 'Sends a message to a channel.', 'Post a message', 'slack'),
  tool('list_channels', 'Lists channels. A message is not sent.', undefined, 'slack'),
]

const rank = (tools: readonly CatalogueTool[], query: string) => drained(rankTools(tools, query))
const ranked = (query: string) => rank(TOOLS, query).map(({ definition }) => definition.name)

describe('the ranking of tools', () => {
  it.each([
    ['pull request', 'list_pull_requests'],
    ['create issue', 'createIssue'],
    ['creating an issue', 'createIssue'],
    ['send slack message', 'send_message'],
    ['post', 'send_message'],
    ['repo search', 'search_code'],
    ['CHANNELS', 'list_channels'],
  ])('finds %s', (query, best) => {
    expect(ranked(query)[0]).toBe(best)
  })

  it('finds nothing for words that no tool has', () => {
    expect(ranked('zebra')).toEqual([])
    expect(ranked('!!')).toEqual([])
    expect(rank([], 'x')).toEqual([])
  })

  it('prefers rare words, and keeps the order of equals', () => {
    expect(ranked('list channels')[0]).toBe('list_channels')
    const equal = ['b', 'a', 'c'].map((name) => tool(name, 'The same.'))
    expect(rank(equal, 'same')).toEqual(equal)
  })

  it('finds one of 5,000 tools', () => {
    const many = Array.from({ length: 5_000 }, (_, index) => tool(`tool_${index}`, `Does thing ${index}.`))
    expect(rank(many, 'tool 4711 thing')[0]?.definition.name).toBe('tool_4711')
  })
})
