/** Search in tools by words (Okapi BM25 over weighted fields). Pure. */
import type { CatalogTool } from '../types.ts'

/** How much a word counts by the field that it is in. */
const WEIGHTS = { name: 4, title: 3, integration: 2, description: 1 } as const

/** Parameters of BM25: how soon repetitions stop counting, and how much long texts are discounted. */
const K1 = 1.2
const B = 0.75
/** What a word counts that only begins like one of the query, such as `repositories` for `repo`. */
const PREFIX_SHARE = 0.5
const SHORTEST_PREFIX = 3
/** Words of a description that are read. */
const MOST_WORDS = 200

/** A tool as a bag of words. */
interface Indexed {
  /** Weighted frequency of each word. */
  words: ReadonlyMap<string, number>
  length: number
}

const indexed = new WeakMap<CatalogTool, Indexed>()

/** The tools that have a word of a query, best first; those of the same score in the given order. */
export function rankTools(tools: readonly CatalogTool[], query: string): CatalogTool[] {
  const wanted = [...new Set(wordsOf(query))]
  const bags = tools.map(indexOf)
  const averageLength = bags.reduce((sum, { length }) => sum + length, 0) / Math.max(1, bags.length)
  const scores = new Float64Array(tools.length)
  for (const word of wanted) {
    const frequencies = bags.map(({ words }) => frequencyOf(words, word))
    const having = frequencies.filter((frequency) => frequency > 0).length
    if (having === 0) continue
    const rarity = Math.log(1 + (tools.length - having + 0.5) / (having + 0.5))
    for (const [index, frequency] of frequencies.entries()) {
      if (frequency === 0) continue
      const length = (bags[index] as Indexed).length / averageLength
      const saturated = (frequency * (K1 + 1)) / (frequency + K1 * (1 - B + B * length))
      scores[index] = (scores[index] as number) + rarity * saturated
    }
  }
  return tools
    .map((tool, index) => ({ tool, score: scores[index] as number }))
    .filter(({ score }) => score > 0)
    .sort((left, right) => right.score - left.score)
    .map(({ tool }) => tool)
}

function frequencyOf(words: ReadonlyMap<string, number>, word: string): number {
  const exact = words.get(word)
  if (exact !== undefined) return exact
  if (word.length < SHORTEST_PREFIX) return 0
  let most = 0
  for (const [other, frequency] of words) if (other.startsWith(word)) most = Math.max(most, frequency)
  return most * PREFIX_SHARE
}

function indexOf(tool: CatalogTool): Indexed {
  const known = indexed.get(tool)
  if (known) return known
  const { definition, integration } = tool
  const fields = {
    name: definition.name,
    title: definition.title ?? '',
    integration: `${integration.slug} ${integration.displayName}`,
    description: definition.description ?? '',
  }
  const words = new Map<string, number>()
  let length = 0
  for (const [field, weight] of Object.entries(WEIGHTS)) {
    const found = wordsOf(fields[field as keyof typeof WEIGHTS]).slice(0, MOST_WORDS)
    length += found.length
    for (const word of found) words.set(word, (words.get(word) ?? 0) + weight)
  }
  const made = { words, length }
  indexed.set(tool, made)
  return made
}

/** `listPullRequests` and `list_pull_requests` have the same words. A plural is its singular. */
function wordsOf(text: string): string[] {
  const separated = text
    .normalize('NFKC')
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
  return (separated.match(/[\p{L}\p{N}]+/gu) ?? []).map(singular)
}

const singular = (word: string): string =>
  word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
