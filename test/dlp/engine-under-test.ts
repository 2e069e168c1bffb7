import { BUILT_IN_DETECTORS } from '../../src/dlp/detectors/registry.ts'
import * as profiles from '../../src/dlp/policy/profile-detector.ts'
import { detect } from '../../src/dlp/scan/detect.ts'
import type { TextDetector } from '../../src/dlp/stream/text-stream.ts'
import type { CustomDetector, Finding, Profile } from '../../src/dlp/types.ts'

/** Every detector of the engine at the score that policies get when they name none. */
export function fullProfile(custom: readonly CustomDetector[] = []): Profile {
  return {
    direction: 'request',
    version: 'corpus',
    rules: [
      ...BUILT_IN_DETECTORS.map(({ id, minimumScore }) => ({
        detector: id,
        minimumScore,
        action: 'redact' as const,
      })),
      ...custom.map(({ id }) => ({ detector: id, minimumScore: 0, action: 'redact' as const })),
    ],
    custom,
    uninspectable: 'allow',
  }
}

/** The engine as streams and whole texts use it. */
export interface BoundDetector extends TextDetector {
  detect: (text: string) => Finding[]
}

/** The engine's functions, bound to a profile that redacts whatever it finds. */
export function detectorOf(profile: Profile): BoundDetector {
  return { ...profiles.detectorOf(profile), detect: (text) => detect(text, profile) }
}
