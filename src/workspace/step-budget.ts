import { WorkspaceError } from './contract.ts'

/** The steps that one call may take. The clock of Workers stands still while code runs, so that work is bounded by counts. */
export class StepBudget {
  readonly #message: string
  #left: number

  /** @param message of the error, for the model. */
  constructor(most: number, message: string) {
    this.#left = most
    this.#message = message
  }

  /** Counts steps before they are done. @throws WorkspaceError invalid if there are not that many left */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new WorkspaceError('invalid', this.#message)
  }
}
