"""What other services lack in stock moto: S3, FSx and Resource Groups."""
