import { BUILT_IN_DETECTORS } from '../../../src/dlp/detectors/registry.ts'
import { detect } from '../../../src/dlp/scan/detect.ts'
import type { Action, CustomDetector, Profile } from '../../../src/dlp/types.ts'
import type { Slices } from '../../../src/lib/slices.ts'

/** A profile of detectors at the score that policies use when they name none. */
export function profileOf(
  ids: readonly string[],
  { custom = [], action = 'redact' }: { custom?: readonly CustomDetector[]; action?: Action } = {},
): Profile {
  const rule = (detector: string, minimumScore: number) => ({ detector, minimumScore, action })
  return {
    direction: 'request',
    version: 'test',
    rules: [...ids.map((id) => rule(id, 0.5)), ...custom.map(({ id }) => rule(id, 0))],
    custom,
    uninspectable: 'allow',
  }
}

export const EVERYTHING = profileOf(BUILT_IN_DETECTORS.map(({ id }) => id))

/** A function that does its work in one slice. */
export const inOneSlice = <Inputs extends unknown[], Result>(work: (...inputs: Inputs) => Result) =>
  // biome-ignore lint/correctness/useYield: there is one slice
  function* (...inputs: Inputs): Slices<Result> {
    return work(...inputs)
  }

/** Findings in a text, as `detector: characters`. */
export function found(text: string, profile: Profile = EVERYTHING): string[] {
  return detect(text, profile).map(({ detector, start, end }) => `${detector}: ${text.slice(start, end)}`)
}
