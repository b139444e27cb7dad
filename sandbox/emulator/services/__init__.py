"""What other services lack in stock moto: S3, FSx, EFS and Resource Groups."""
