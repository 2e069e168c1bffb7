/** How much a model reads in one call whose tools run at the provider: its context again after each round of uses. */
import type { RequestOutline } from '../protocols/request-outline.ts'
import { DEFAULT_USES } from '../protocols/server-tools.ts'

/**
 * The provider pauses after ten rounds.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools (read 2026-11-22)
 */
export const MOST_ROUNDS = 10
/**
 * The most tokens that one use of a tool adds to the context. For unknown tools it is the whole context.
 *
 * - `web_search`: ten results of 2,500 tokens, the vendor's figure for an average page
 * - `web_fetch`: the vendor's figure for a research paper, unless the request has `max_content_tokens`.
 *   https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-fetch-tool
 * - `code_execution` and the search of tools: assumed; no limit is documented
 */
const RESULT_TOKENS: Readonly<Record<string, number>> = {
  web_search: 25_000,
  web_fetch: 125_000,
  code_execution: 10_000,
  tool_search_tool_regex: 10_000,
  tool_search_tool_bm25: 10_000,
}
/** A provider's preview of a search reads one context. */
const SEARCH_OPTION = 'web_search_options'
const REMOTE_TOOLS = 'mcp_servers'

interface Uses {
  uses: number
  tokens: number
}

/**
 * @param first tokens of the request. @param output the most tokens of output. @param window of the model, in tokens.
 * @returns tokens of all reads after the first one, and of the last.
 */
export function laterReads(
  outline: RequestOutline,
  { first, output, window }: { first: number; output: number; window: number },
): { total: number; last: number } {
  const groups = usesOf(outline).sort((left, right) => right.tokens - left.tokens)
  const uses = groups.reduce((sum, group) => sum + group.uses, 0)
  const rounds = Math.min(MOST_ROUNDS, uses)
  let total = 0
  let last = Math.min(first, window)
  for (let round = 1; round <= rounds; round++) {
    // Most is read when the first round has as many uses as the others leave, and the largest results.
    const results = largestResults(groups, uses - rounds + round)
    last = Math.min(window, first + output + results)
    total += last
  }
  return { total, last }
}

function usesOf({ serverTools, fields, members }: RequestOutline): Uses[] {
  const groups = serverTools.map(({ type, mostUses, mostResultTokens }) => ({
    uses: mostUses ?? MOST_ROUNDS,
    tokens: (type === 'web_fetch' && mostResultTokens) || (RESULT_TOKENS[type] ?? Number.POSITIVE_INFINITY),
  }))
  const options = fields[SEARCH_OPTION]
  if (options !== undefined && options !== null && options !== false) {
    groups.push({ uses: DEFAULT_USES, tokens: RESULT_TOKENS.web_search ?? 0 })
  }
  if (members.some(({ name }) => name === REMOTE_TOOLS)) {
    groups.push({ uses: MOST_ROUNDS, tokens: Number.POSITIVE_INFINITY })
  }
  return groups
}

/** Tokens of the largest results of a number of uses. @param groups the largest results first. */
function largestResults(groups: readonly Uses[], number: number): number {
  let [left, tokens] = [number, 0]
  for (const group of groups) {
    const used = Math.min(left, group.uses)
    if (used > 0) tokens += used * group.tokens
    left -= used
  }
  return tokens
}
