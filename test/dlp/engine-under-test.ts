import { detect } from '../../src/governance/dlp/detect.ts'
import { safeLength } from '../../src/governance/dlp/hold.ts'
import { KNOWN_DETECTORS } from '../../src/governance/dlp/known-detectors.ts'
import type { TextDetector } from '../../src/governance/dlp/text-stream.ts'
import type { CustomDetector, Profile } from '../../src/governance/dlp/types.ts'

/** Every detector of the engine at the score that policies get when they name none. */
export function fullProfile(custom: readonly CustomDetector[] = []): Profile {
  return {
    direction: 'request',
    version: 'corpus',
    rules: [
      ...KNOWN_DETECTORS.map(({ id, minimumScore }) => ({
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

/** The engine's functions, bound to a profile that redacts whatever it finds. */
export function detectorOf(profile: Profile): TextDetector {
  return {
    detect: (text) => detect(text, profile),
    safeLength: (context, text) => safeLength(context, text, profile),
    actionOf: () => 'redact',
  }
}
