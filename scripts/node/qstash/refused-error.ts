/** Thrown for a request that QStash would refuse; `status` is the HTTP status of the answer. */
export class RefusedError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}
