import { ApiError } from '../../lib/api-error.ts'

/** Steps of one slice: about a millisecond. A step is about one character that one pass of a scan reads. */
const SLICE_STEPS = 16 * 1024
/**
 * Steps that are allowed for each byte, for each text or piece of one (which is read with what is held back before it),
 * and once. Texts made to keep the detectors busy need less than half of them: `test/dlp/steps.test.ts`.
 */
const STEPS_PER_BYTE = 512
const STEPS_PER_TEXT = 8 * 1024
const FIRST_STEPS = 4_000_000
/**
 * Steps for each byte and each pattern: a text is read in its original and its normalised form, and again while it is held back.
 */
const STEPS_PER_PASS = 32

/**
 * Maximum number of findings that are in memory at once. Texts with blanks are released piece by piece: more findings than this
 * are in a run of megabytes without a blank, or where a pattern without bound holds back a whole text.
 */
export const MOST_FINDINGS = 200_000

/**
 * Checks the edits of one body, each of which takes some hundred bytes until the body is sent.
 * @throws ApiError `dlp_too_complex` for more than may be in memory at once.
 */
export function checkEdits(count: number): void {
  if (count > MOST_FINDINGS) throw tooComplex()
}

/**
 * Counts the steps of one inspection, and fails closed where they grow faster than the texts. It bounds what detectors
 * could still cost on texts that no test has thought of.
 */
export class ScanBudget {
  #spent = 0
  /** Steps that slices are cut by: those that were spent, and others. */
  #paced = 0
  #allowed: number
  #sliceEnd = SLICE_STEPS

  constructor(allowed = FIRST_STEPS) {
    this.#allowed = allowed
  }

  get spent(): number {
    return this.#spent
  }

  /** @param passes of the whole text that the policy's own patterns and dictionaries need. */
  allow(bytes: number, passes: number): void {
    this.#allowed += STEPS_PER_TEXT + bytes * (STEPS_PER_BYTE + STEPS_PER_PASS * passes)
  }

  /** @throws ApiError `dlp_too_complex` when there are no steps left. */
  spend(steps: number): void {
    this.#spent += steps
    this.#paced += steps
    if (this.#spent > this.#allowed) throw tooComplex()
  }

  /** Counts steps for the length of a slice only: they are bounded by those that are spent. */
  pace(steps: number): void {
    this.#paced += steps
  }

  /** Whether the current slice has ended, which begins the next one. */
  endsSlice(): boolean {
    if (this.#paced < this.#sliceEnd) return false
    this.#sliceEnd = this.#paced + SLICE_STEPS
    return true
  }

  /** @throws ApiError `dlp_too_complex` for more findings in one text, or in what is held back of it. */
  checkFindings(count: number): void {
    if (count > MOST_FINDINGS) throw tooComplex()
  }
}

const tooComplex = () =>
  new ApiError(
    'invalid_request',
    'Data-loss prevention cannot inspect this call: its texts take too many steps.',
    { code: 'dlp_too_complex', shouldRetry: false },
  )
