import { citationAnswers } from './answers/citation-answers.ts'
import { endingAnswers } from './answers/ending-answers.ts'
import { pauseTurn } from './answers/pause-turn.ts'
import { shapeAnswers } from './answers/shape-answers.ts'
import { thinkingAnswers } from './answers/thinking-answers.ts'
import { toolAnswers } from './answers/tool-answers.ts'
import { usageAnswers } from './answers/usage-answers.ts'
import { errorScripts } from './built-in-errors.ts'
import { streamScripts } from './built-in-streams.ts'
import type { ScriptRequest } from './script-request.ts'
import type { Step } from './script-steps.ts'

export type BuiltInScript = (request: ScriptRequest) => Iterable<Step>

/** Scripts about how answers travel and fail: their requests may have members that the vendor does not document. */
export const wireScripts: ReadonlySet<string> = new Set(
  [...errorScripts, ...streamScripts].map(([name]) => name),
)

/** The scripts that need no registering, by the name used in `script:NAME`. */
export const builtInScripts: ReadonlyMap<string, BuiltInScript> = new Map<string, BuiltInScript>([
  ...errorScripts,
  ...streamScripts,
  ...toolAnswers,
  ...thinkingAnswers,
  ...citationAnswers,
  ...endingAnswers,
  ...usageAnswers,
  ...shapeAnswers,
  ['pause-turn', pauseTurn],
])
