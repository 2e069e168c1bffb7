import * as z from 'zod'

/** The JSON schema of an answer of the judge, within the rules that strict schemas have. */
export const VERDICT_SCHEMA = {
  type: 'object',
  properties: {
    criteria: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          quote: { type: 'string', description: 'Words of the objective, exactly' },
          evidence: { type: 'string' },
          met: { type: 'boolean' },
        },
        required: ['quote', 'evidence', 'met'],
        additionalProperties: false,
      },
    },
    explanation: { type: 'string' },
    verdict: { type: 'string', enum: ['met', 'not_met', 'cannot_tell'] },
  },
  required: ['criteria', 'explanation', 'verdict'],
  additionalProperties: false,
} as const

/** Maximum number of criteria: a longer answer would fill the row. */
const MOST_CRITERIA = 50
const LONGEST_TEXT = 4_000

const texts = z
  .string()
  .transform((value) => value.replaceAll('\0', '').toWellFormed().slice(0, LONGEST_TEXT))

const judgeAnswer = z.object({
  criteria: z.array(z.object({ quote: texts, evidence: texts, met: z.boolean() })).max(MOST_CRITERIA),
  explanation: texts.refine((value) => value.trim() !== ''),
  verdict: z.enum(['met', 'not_met', 'cannot_tell']),
})

export type JudgeAnswer = z.infer<typeof judgeAnswer>

/**
 * Reads an answer of the judge. A verdict has to follow from its criteria, and each criterion has to quote the objective, so
 * that a judge cannot decide by something else.
 * @returns the answer, or what is wrong with it. No fault repeats text of the answer: it becomes part of the next request.
 */
export function readJudgeAnswer(text: string, objective: string): JudgeAnswer | { fault: string } {
  const parsed = judgeAnswer.safeParse(jsonOf(text))
  if (!parsed.success) {
    const at = parsed.error.issues[0]?.path.join('.') ?? ''
    return { fault: at === '' ? 'it is not the JSON that was requested' : `${at} is missing or not valid` }
  }
  const answer = parsed.data
  const foreign = answer.criteria.findIndex(({ quote }) => !isQuoted(quote, objective))
  if (foreign >= 0) return { fault: `criteria.${foreign}.quote is not a copy of words of the objective` }
  const fault = contradiction(answer)
  return fault === null ? answer : { fault }
}

function contradiction({ verdict, criteria }: JudgeAnswer): string | null {
  if (verdict === 'cannot_tell') return null
  if (criteria.length === 0) return 'criteria is empty'
  const isMet = criteria.every(({ met }) => met)
  return isMet === (verdict === 'met') ? null : 'verdict does not follow from criteria'
}

/** Models change the white space of what they quote. */
const isQuoted = (quote: string, objective: string): boolean =>
  collapsed(quote) !== '' && collapsed(objective).includes(collapsed(quote))

const collapsed = (text: string): string => text.replace(/\s+/g, ' ').trim()

/** Some models put JSON into a block of code. Undefined for text that is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(withoutFences(text.trim()))
  } catch {
    return undefined
  }
}

function withoutFences(text: string): string {
  const line = text.slice(0, text.indexOf('\n') + 1).trim()
  const isBlock = (line === '```' || line === '```json') && text.endsWith('```')
  return isBlock ? text.slice(text.indexOf('\n'), -3) : text
}
