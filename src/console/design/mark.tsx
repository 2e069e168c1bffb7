/** The sign of the product: a gate in a channel. */
export function Mark() {
  return (
    <svg viewBox="0 0 17 17" fill="none" stroke="currentColor" strokeWidth="1.75" aria-hidden="true">
      <path d="M2.5 1v15M14.5 1v15M2.5 4.5h12M2.5 8.5h12" />
      <path d="M5.5 4.5v4M8.5 4.5v4M11.5 4.5v4" strokeWidth="1.25" />
      <path d="M5 13c1.2-1.1 2.3-1.1 3.5 0s2.3 1.1 3.5 0" strokeWidth="1.25" />
    </svg>
  )
}
