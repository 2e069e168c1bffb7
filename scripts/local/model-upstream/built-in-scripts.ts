import { errorScripts } from './built-in-errors.ts'
import { streamScripts } from './built-in-streams.ts'
import type { ScriptRequest } from './script-request.ts'
import type { Step } from './script-steps.ts'

export type BuiltInScript = (request: ScriptRequest) => Iterable<Step>

/** The scripts that need no registering, by the name used in `script:NAME`. */
export const builtInScripts: ReadonlyMap<string, BuiltInScript> = new Map<string, BuiltInScript>([
  ...errorScripts,
  ...streamScripts,
])
