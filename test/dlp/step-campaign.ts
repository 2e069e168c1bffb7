import { VENDOR_KEYS } from '../../src/dlp/detectors/vendor-keys.ts'
import { TokenVault } from '../../src/dlp/policy/actions.ts'
import { PolicyEngine } from '../../src/dlp/policy/policy-engine.ts'
import { detectorOf } from '../../src/dlp/policy/profile-detector.ts'
import { detectAfter } from '../../src/dlp/scan/detect.ts'
import { ScanBudget } from '../../src/dlp/scan/scan-budget.ts'
import { holdBack } from '../../src/dlp/stream/hold-back.ts'
import { TextStream } from '../../src/dlp/stream/text-stream.ts'
import type { CustomDetector, Profile } from '../../src/dlp/types.ts'
import { drained } from '../../src/lib/slices.ts'
import type { StepCounter } from '../harness/counted-steps.ts'
import { describeGrowth, grown, randomText, type Trial } from '../harness/step-search.ts'
import { SeededRandom } from './corpus/seeded-random.ts'
import { fullProfile } from './engine-under-test.ts'

/** A search for texts whose inspection takes more steps than their length explains. */

/** Beginnings, middles and separators of everything that a detector follows. */
const FRAGMENTS = [
  'a', 'A', 'aB1', '1', '1 ', '1-', '12 ', '4111 ', '4111\n', '4111111111111111', '+1 ', '(1', '0', '00', 'a@', 'a.', 'a.b@c.', '1.1.', '1:', '::',
  'f:', '://', 'http://a:b', 'http://a:b@', 'password=', 'password:"', 'token: a1b2c3d4e5f6a7b8c9d0 ', 'secret', 'key', 'eyJ-', 'eyJ.', 'eyJhbGciOiJIUzI1NiJ9.',
  'sk-', 'sk-proj-', 'ya29.', 'SG.', 'M.', '-----BEGIN ', '-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----', '-----', 'AB: ', 'Proc-Type: 4\n',
  'MIIEowIBAAKCAQEA1234567890abcdef\n', 'P<<', '<<', '&#', '&amp;', '&#52;', '%2', '%25', '%34', '\\', '\\u0031', '\\"', '\u200b', 'e\u0301', '\u0301', '\ufdfa', '\u0007',
  'DE89 ', 'D E 8 9 ', 'DE89370400440532013000', '0x', 'QUJDREVGR0hJSktMTU5P', 'QUFBQUFBQUFBQUFB\n', 'UVVGQlFVRkI=', 'YSBiIGMgZCBl', 'Basic ', '"', "'", '=', ':', '/', '-', '_', '.',
  '@', ',', ';', '|', '\t', '\n', '\r\n', ' ', '  ', '!', '{"a":', '["a",', '}', ']', 'x=1&', 'AB12 ', 'Q~', '中1', '中', 'é', 'A1b2C3d4-', '\ud83d', '😀', 'curl -u ',
  '<password>', 'name: password value: ', 'variable "a" { default = "', ' --password', '$2b$12$', 'CamelCaseName ', '4 1 1 1 - ', '1,4111111111111111\n', '№', '4—',
  'upgraded from 10.2.1.3 to ', 'discord.com/api/webhooks/1', 'call ext 1 ', 'id: ', 'iban ', 'ssn ', 'passport ', 'x1234567', 'term', 'a b ', 'KX-',
  ...VENDOR_KEYS.flatMap(({ forms }) => forms.slice(0, 1).map(({ prefix }) => prefix)),
] // biome-ignore format: a list

const CUSTOM: readonly CustomDetector[] = [
  { id: 'bounded', kind: 'pattern', pattern: 'KX-[0-9]{4}(?:-[0-9]{1,6}){0,4}', score: 1 },
  { id: 'wide', kind: 'pattern', pattern: 'a.{0,200}b', score: 1 },
  { id: 'word', kind: 'pattern', pattern: '\\bAB[0-9]+', score: 1 },
  { id: 'terms', kind: 'dictionary', terms: ['a', 'a b', 'a b a', 'term', 'term term', '1 1 1 1'], score: 1 },
]

/** Every fragment by itself, and with each separator after it. */
export const simpleTrials = (): Trial[] =>
  FRAGMENTS.flatMap((fragment) =>
    ['', ' ', '\n', '.', ':', '"', '=', '/'].map((end) => grown('', [[fragment + end, 1]], '')),
  )

/** One unit, repeated. */
export const repeating = (unit: string): Trial => grown('', [[unit, 1]], '!!!')

/** A random combination of fragments. */
export const randomTrial = (random: SeededRandom): Trial => randomText(random, FRAGMENTS)

const PROFILE = fullProfile()
const WITH_CUSTOM = fullProfile(CUSTOM)
const encoder = new TextEncoder()

function inPieces(profile: Profile, length: number) {
  const detector = detectorOf(profile)
  return (text: string) => {
    const stream = new TextStream(detector, () => '#')
    for (let at = 0; at < text.length; at += length) stream.push(text.slice(at, at + length))
    stream.end()
  }
}

function asArguments(text: string) {
  const detector = detectorOf(PROFILE)
  const detectors = { request: detector, response: detector, tool_arguments: detector, tool_result: detector }
  const vault = new TokenVault(new Uint8Array(32), 'o')
  const engine = new PolicyEngine({ detectors, policyVersion: '1', kind: 'request', vault })
  // The text in a string, and in many small ones.
  const json = JSON.stringify({ a: text, b: text.match(/.{1,9}/gs) })
  engine.inspect(
    { path: ['a'], partial: false, json: true },
    encoder.encode(JSON.stringify(json).slice(1, -1)),
  )
}

const budgetless = () => new ScanBudget(Number.POSITIVE_INFINITY)

/** The ways in which a text is inspected. */
export const WAYS = {
  whole: (text: string) => void drained(detectAfter('', text, PROFILE, budgetless())),
  'hold-back': (text: string) => void drained(holdBack('', text, PROFILE, budgetless())),
  'pieces of 64 units': inPieces(PROFILE, 64),
  'own patterns and terms': (text: string) => void drained(detectAfter('', text, WITH_CUSTOM, budgetless())),
  'own patterns and terms in pieces': inPieces(WITH_CUSTOM, 64),
  'tool arguments': asArguments,
} satisfies Record<string, (text: string) => void>

/** Blocks and characters for each unit of a text; the worst that are known take half of it. */
const MOST_STEPS_PER_UNIT = 2_000

/** Does what `describeGrowth` does, for an inspection. */
export const describeExcess = (
  counter: StepCounter,
  inspect: (text: string) => void,
  { name, text }: Trial,
): string[] =>
  describeGrowth(name, MOST_STEPS_PER_UNIT, (units) => {
    const grown = text(units)
    return counter.stepsOf(() => inspect(grown))
  })

/** Steps of the engine's own counter for each unit, of a whole text. */
export function budgetOf({ text }: Trial, units: number): number {
  const budget = budgetless()
  drained(detectAfter('', text(units), PROFILE, budget))
  return budget.spent / units
}

export const seeded = (seed: number) => new SeededRandom(seed)
