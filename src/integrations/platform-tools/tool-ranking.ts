/** Search in tools by words (Okapi BM25 over weighted fields). Pure. */
import type { Slices } from '../../lib/slices.ts'
import type { CatalogueTool } from '../types.ts'

/** Weight of a word by the field that it is in. */
const WEIGHTS = { name: 4, title: 3, integration: 2, description: 1 } as const

/** Parameters of BM25: how soon repetitions stop counting, and how much long texts are discounted. */
const K1 = 1.2
const B = 0.75
/** Share of the weight for a word that only begins with a word of the query, such as `repositories` for `repo`. */
const PREFIX_SHARE = 0.5
const SHORTEST_PREFIX = 3
/** Words of a field, and characters of it, that are read. */
const MOST_WORDS = 200
const LONGEST_FIELD = 4_096
/** Words of a query that count. */
const MOST_TERMS = 32
/** Words of a tool that begin like one of the query and are looked at. */
const MOST_PREFIXED = 16
/** Tools in one slice: of those that are indexed, and of those that are scored for one word. */
const INDEXED_AT_ONCE = 16
const SCORED_AT_ONCE = 2_000

/** A tool as a bag of words. */
interface Indexed {
  /** Sorted words, so that a word and those that begin with it are found without reading all. */
  words: readonly string[]
  /** Weighted frequency of each word. */
  frequencies: readonly number[]
  length: number
}

const indexed = new WeakMap<CatalogueTool, Indexed>()

/**
 * The tools that have a word of a query, best first; those of the same score in the given order. In slices: an organization
 * may have thousands of tools, whose texts are those of upstreams.
 */
export function* rankTools(tools: readonly CatalogueTool[], query: string): Slices<CatalogueTool[]> {
  const wanted = [...new Set(wordsOf(query))].slice(0, MOST_TERMS)
  const bags: Indexed[] = []
  for (const tool of tools) {
    if (!indexed.has(tool) && bags.length % INDEXED_AT_ONCE === 0) yield
    bags.push(indexOf(tool))
  }
  const averageLength = bags.reduce((sum, { length }) => sum + length, 0) / Math.max(1, bags.length)
  const scores = new Float64Array(tools.length)
  const frequencies = new Float64Array(tools.length)
  for (const word of wanted) {
    let having = 0
    for (const [index, bag] of bags.entries()) {
      if (index % SCORED_AT_ONCE === 0) yield
      frequencies[index] = frequencyOf(bag, word)
      having += Number(frequencies[index] !== 0)
    }
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

function frequencyOf({ words, frequencies }: Indexed, word: string): number {
  const first = placeOf(words, word)
  if (words[first] === word) return frequencies[first] as number
  if (word.length < SHORTEST_PREFIX) return 0
  let most = 0
  for (let at = first; at < first + MOST_PREFIXED && words[at]?.startsWith(word); at++) {
    most = Math.max(most, frequencies[at] as number)
  }
  return most * PREFIX_SHARE
}

/** The place of the first word that is not before a word. */
function placeOf(words: readonly string[], word: string): number {
  let [from, to] = [0, words.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((words[middle] as string) < word) from = middle + 1
    else to = middle
  }
  return from
}

function indexOf(tool: CatalogueTool): Indexed {
  const known = indexed.get(tool)
  if (known) return known
  const { definition, integration } = tool
  const fields = {
    name: definition.name,
    title: definition.title ?? '',
    integration: `${integration.slug} ${integration.displayName}`,
    description: definition.description ?? '',
  }
  const counts = new Map<string, number>()
  let length = 0
  for (const [field, weight] of Object.entries(WEIGHTS)) {
    const found = wordsOf(fields[field as keyof typeof WEIGHTS])
    length += found.length
    for (const word of found) counts.set(word, (counts.get(word) ?? 0) + weight)
  }
  const sorted = [...counts].sort(([left], [right]) => (left < right ? -1 : 1))
  const made = {
    words: sorted.map(([word]) => word),
    frequencies: sorted.map(([, frequency]) => frequency),
    length,
  }
  indexed.set(tool, made)
  return made
}

/** `listPullRequests` and `list_pull_requests` have the same words. A plural is its singular. */
function wordsOf(text: string): string[] {
  const separated = text
    .slice(0, LONGEST_FIELD)
    .normalize('NFKC')
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
  return (separated.match(/[\p{L}\p{N}]+/gu) ?? []).slice(0, MOST_WORDS).map(singular)
}

const singular = (word: string): string =>
  word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
