/** One page of rows whose secrets were sealed under the current key of the vault. */
export interface RotatedPage {
  resealed: number
  /** Rows that do not open: their key is not in the ring. */
  failed: number
  /** The id after which the next page begins; null after the last. */
  next: string | null
}
