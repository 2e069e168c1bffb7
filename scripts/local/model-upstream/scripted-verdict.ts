/** The output in a request of the judge (`src/agents/evaluations/judge-request.ts`), and the objective after it. */
const JUDGED =
  /^Content of the output of the step, [^\n]*\n<<<untrusted (?<mark>[0-9a-f]{16})\n(?<output>[\s\S]*?)\n\k<mark> untrusted>>>\s*<objective>\n(?<objective>[\s\S]*?)\n<\/objective>/m

const QUOTED = /"[^"]+"|“[^”]+”|`[^`]+`/g

/**
 * The answer of the scripted model as a judge: each quoted text of the objective has to be in the output. An objective
 * without one cannot be judged, because nothing here understands it.
 * @returns undefined for a text that is no request of the judge.
 */
export function scriptedVerdict(userText: string): unknown {
  const { output, objective } = JUDGED.exec(userText)?.groups ?? {}
  if (output === undefined || objective === undefined) return undefined
  const criteria = [...new Set(objective.match(QUOTED))].map((quote) => {
    const met = output.includes(quote.slice(1, -1))
    return { quote, evidence: met ? 'The output has it.' : 'The output does not have it.', met }
  })
  if (criteria.length === 0) {
    return {
      criteria,
      explanation:
        'The scripted model only compares quoted texts of the objective with the output, and found none.',
      verdict: 'cannot_tell',
    }
  }
  const missing = criteria.filter(({ met }) => !met).map(({ quote }) => quote)
  return {
    criteria,
    explanation:
      missing.length === 0 ? 'The output has every quoted text.' : `Missing: ${missing.join(', ')}.`,
    verdict: missing.length === 0 ? 'met' : 'not_met',
  }
}
