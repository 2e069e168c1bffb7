import { pinnedDefinition } from '../../src/integrations/catalogue/clean-definition.ts'
import { rankTools } from '../../src/integrations/platform-tools/tool-ranking.ts'
import type { CatalogueTool } from '../../src/integrations/types.ts'
import { drained } from '../../src/lib/slices.ts'
import { readablePage } from '../../src/responses/tools/web/html/readable-page.ts'

/** An input, as large as it may be, that once stalled an isolate for a second or more. */
export interface Stall {
  name: string
  read: () => unknown
  /** Somewhat more than the steps that it takes. */
  most: number
}

/** 500 elements, in 2 MB. */
const styledPage = (style: string) => () => {
  const element = `<p style="${style}${' '.repeat(3_970)}x">a</p>`
  return drained(readablePage(element.repeat(500), 'https://a.example/'))
}

const described = (description: string) => () =>
  pinnedDefinition({ name: 'a', description, inputSchema: { type: 'object' } })

const nestedComments = `${'<!'.repeat(50_000)}<!---->${'---->'.repeat(60_000)}`
const commentPairs = '<!<!---->'.repeat(400_000 / 9)

const wordsFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => `word${first + index}`).join(' ')
const TOOLS = Array.from({ length: 2_000 }, (_, index) => ({
  name: `s_${index}`,
  integration: { slug: 's', displayName: 'S' },
  definition: { name: `tool_${index}`, description: wordsFrom(index % 100, 25), inputSchema: {} },
})) as unknown as CatalogueTool[]

export const STALLS: Stall[] = [
  { name: 'a page of 500 font sizes with spaces', read: styledPage('font-size:'), most: 60_000_000 },
  { name: 'a page of 500 opacities with spaces', read: styledPage('opacity:'), most: 60_000_000 },
  {
    name: 'a description of 400 KB of comments in each other',
    read: described(nestedComments),
    most: 300_000,
  },
  { name: 'a description of 400 KB of pairs of comments', read: described(commentPairs), most: 300_000 },
  {
    name: 'a search of 2,000 tools with 125 words',
    read: () => drained(rankTools(TOOLS, wordsFrom(0, 125))),
    most: 6_000_000,
  },
]
