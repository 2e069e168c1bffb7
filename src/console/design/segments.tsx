import styles from './segments.module.css'

type SegmentsProps<Value extends string> = {
  label: string
  values: ReadonlyArray<readonly [value: Value, text: string]>
  chosen: Value
  onChoose: (value: Value) => void
}

/** A choice of few, all of which are seen. */
export function Segments<Value extends string>({ label, values, chosen, onChoose }: SegmentsProps<Value>) {
  return (
    <fieldset className={styles.segments} aria-label={label}>
      {values.map(([value, text]) => (
        <button key={value} type="button" aria-pressed={value === chosen} onClick={() => onChoose(value)}>
          {text}
        </button>
      ))}
    </fieldset>
  )
}
