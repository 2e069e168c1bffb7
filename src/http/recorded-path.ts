import { type PolicyDeps, policyFor } from '../calls/policy-for-call.ts'
import { recordableText } from '../dlp/recordable-text.ts'
import type { Principal } from '../identity/principal.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { runSlices } from '../lib/slices.ts'
import { isUuid } from '../wire/management-fields.ts'

/** Words of routes, and names that no policy inspects elsewhere either. */
const WORD = /^(?:v1|[A-Za-z_-]{0,40})$/
/** Ids as this service makes them (`newId`, `newResponseId`), and of responses of runs. */
const OWN_ID = /^[a-z]{2,10}_(?:[0-9A-Za-z]{22}|[0-9A-Za-z]{32}|[0-9A-Za-z]{37}|run_[0-9a-f-]{36})$/

const isKnown = (segment: string): boolean => WORD.test(segment) || OWN_ID.test(segment) || isUuid(segment)

/** Whether a path contains a text that a caller chose, such as an unknown id. */
export const hasChosenText = (path: string): boolean => !path.split('/').every(isKnown)

/** A path as records have it where no policy is known: without the texts that a caller chose. */
export const withoutChosenTexts = (path: string): string =>
  path
    .split('/')
    .map((segment) => (isKnown(segment) ? segment : '*'))
    .join('/')

/** A path as the records of a caller have it: its policies inspect what the caller chose. */
export async function recordedPath(deps: PolicyDeps, principal: Principal, path: string): Promise<string> {
  try {
    const policy = await policyFor(deps, principal, { kind: 'tool', id: '', family: 'platform' })
    return await runSlices(recordableText(policy, path))
  } catch (error) {
    logEvent('warn', 'path_not_inspected', { error: errorText(error) })
    return withoutChosenTexts(path)
  }
}
